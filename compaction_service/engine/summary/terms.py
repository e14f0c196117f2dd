"""Names a reader may need word for word: paths, URLs, identifiers, numbers. Found in any text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["path", "url", "identifier", "number"]

_TOKEN = re.compile(r"[A-Za-z0-9_\u00c0-\u024f\u0370-\u052f~./\\:@#%+=&?*$-]+")
_MAX_TOKEN = 300  # characters; what is longer is data, not a name
_MAX_IDENTIFIER = 64
_LINE = re.compile(r":\d+(?::\d+)?$")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]+[^:]{2,}")
_SEGMENT = re.compile(r"[\w.@+~%$*-]+")
_EXTENSION = re.compile(r"[\w.@+~-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}")
_NUMBER = re.compile(r"[#$+-]?\d[\d.,:/%-]*")
_IDENTIFIER = re.compile(
    r"(?=.*[A-Za-z])(?:\w*[A-Za-z0-9]_\w+|[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z]+[a-z]+[A-Z]\w*|\w*[A-Za-z]\d\w*|\w*\d[A-Za-z]\w*|[A-Za-z]{2,}-\d[\w-]*"
    r"|[A-Z]\w*Error|[A-Z]\w*Exception|\w+(?:::\w+)+|[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+|@[\w.-]+/[\w.-]+|#\d+)"
)
# A bare name counts as a file only with an ending that is one; with a slash before it any ending will do.
_ENDINGS = frozenset(
    "bash bat bib c cc cfg cjs class cmake conf cpp cs css csv cu dart db diff doc docx dockerfile env erl ex exs gif go gradle graphql h hpp hs htm html "
    "ini ipynb jar java jpeg jpg js json jsonl jsx kt less lock log lua m md mjs mk ml mod nix patch pdf php pl png po ppt pptx properties proto ps1 py pyi "
    "pyx r rb rs rst sass scala scss sh so sql sqlite sum svg swift tar tex tf toml ts tsv tsx ttf txt vue wasm webp xls xlsx xml yaml yml zip zsh".split()
)
_BACKTICKED = re.compile(r"`([^`\n]{2,80})`")


class Term(NamedTuple):
    kind: Kind
    text: str


def terms(text: str) -> Iterator[Term]:
    """Every mention, in order."""
    known: dict[str, list[Term]] = {}
    for token in _TOKEN.findall(text):
        if token not in known:
            known[token] = list(_classify(token))
        yield from known[token]


def paths(text: str) -> list[str]:
    """The distinct file paths, in order."""
    return list(dict.fromkeys(t.text for t in terms(text) if t.kind == "path"))


def backticked(text: str) -> list[str]:
    return _BACKTICKED.findall(text)


def _classify(token: str) -> Iterator[Term]:
    if len(token) > _MAX_TOKEN:
        return
    token = token.strip("&?=*:%").rstrip(".,:;")
    if "://" in token:
        if len(token.partition("://")[2]) > 2:
            yield Term("url", token)
        return
    for piece in token.split("=") if "=" in token else (token,):
        name = _LINE.sub("", piece.rstrip(".:"))
        if _is_path(name):
            yield Term("path", name)
        elif _NUMBER.fullmatch(name):
            yield Term("number", name)
        elif 2 < len(name) <= _MAX_IDENTIFIER:
            name = name.strip("-+./~$")
            if _IDENTIFIER.fullmatch(name):
                yield Term("identifier", name)


def _is_path(name: str) -> bool:
    if not 3 <= len(name) <= _MAX_TOKEN:
        return False
    if "\\" in name:
        return bool(_WINDOWS.fullmatch(name))
    if "/" not in name:
        stem, dot, ending = name.rpartition(".")
        return bool(dot and ending.lower() in _ENDINGS and stem.strip(".") and _SEGMENT.fullmatch(stem) and not stem.startswith("-"))
    if name[0] == "-" or "//" in name:
        return False
    parts = name.strip("/").split("/")
    if not all(map(_SEGMENT.fullmatch, parts)) or not any(c.isalpha() for c in name):
        return False
    if _EXTENSION.fullmatch(parts[-1]):
        return True
    rooted = name.startswith(("/", "./", "../", "~/"))
    named = all(any(c.isalpha() for c in part) or part in (".", "..") for part in parts)
    return len(parts) >= (2 if rooted else 3) and named
