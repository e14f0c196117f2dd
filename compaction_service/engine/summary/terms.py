"""Names a reader may need word for word: paths, URLs, identifiers, numbers. Found in any text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from .lexicon import FILE_ENDINGS

Kind = Literal["path", "url", "identifier", "number"]

_TOKEN = re.compile(r"[A-Za-z0-9_\u00c0-\u024f\u0370-\u052f~./\\:@#%+=&?*$-]+")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]*[.:?]?")  # most tokens: a word, perhaps at a sentence's end
_MAX_TOKEN = 300  # characters; what is longer is data, not a name
_MAX_IDENTIFIER = 64
_LINE = re.compile(r":\d+(?::\d+)?$")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]+[^:]{2,}")
_SEGMENT = re.compile(r"[\w.@+~%$*-]+")
_EXTENSION = re.compile(r"[\w.@+~-]*\w\.[A-Za-z][A-Za-z0-9]{0,7}")
_NUMBER = re.compile(r"[#$+-]?\d[\d.,:/%-]*")
_IDENTIFIER = re.compile(
    r"""(?=.*[A-Za-z])(?:
        \w*[A-Za-z0-9]_\w+                                # snake_case
        |[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z]+[a-z]+[A-Z]\w*      # camelCase, PascalCase, ValueError
        |\w*[A-Za-z]\d\w*|\w*\d[A-Za-z]\w*               # sha256, 4f2a
        |[A-Za-z]{2,}-\d[\w-]*|@[\w.-]+/[\w.-]+           # INV-2931, @scope/package
        |\w+(?:::\w+)+|[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+    # std::vector, os.path
    )""",
    re.VERBOSE,
)
_BACKTICKED = re.compile(r"`([^`\n]{1,80})`")


class Term(NamedTuple):
    kind: Kind
    text: str


def terms(text: str) -> Iterator[Term]:
    """Every mention, in order."""
    known: dict[str, list[Term]] = {}
    for token in _TOKEN.findall(text):
        if token not in known:
            known[token] = [] if _PLAIN.fullmatch(token) else list(_classify(token))
        yield from known[token]


def paths(text: str) -> list[str]:
    """The distinct file paths, in order."""
    return list(dict.fromkeys(t.text for t in terms(text) if t.kind == "path"))


def backticked(text: str) -> list[str]:
    """The contents of code spans, of two characters or more."""
    return [found for found in _BACKTICKED.findall(text) if len(found.strip()) > 1]


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
    if not 3 <= len(name) <= _MAX_TOKEN or name[0] == "-":
        return False
    if "\\" in name:
        return bool(_WINDOWS.fullmatch(name))
    return _is_slashed(name) if "/" in name else _is_bare_file(name)


def _is_bare_file(name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return ending.lower() in FILE_ENDINGS and bool(stem.strip(".")) and bool(_SEGMENT.fullmatch(stem))


def _is_slashed(name: str) -> bool:
    parts = name.strip("/").split("/")
    if not all(map(_SEGMENT.fullmatch, parts)) or not any(c.isalpha() for c in name):
        return False
    if _EXTENSION.fullmatch(parts[-1]):
        return True
    rooted = name.startswith(("/", "./", "../", "~/"))
    named = all(any(c.isalpha() for c in part) or part in (".", "..") for part in parts)
    return len(parts) >= (2 if rooted else 3) and named
