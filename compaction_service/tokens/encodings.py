"""The two encodings, built from the rank files that litellm's wheel carries: no download, ever (semantics 3).

litellm is found, not imported (importing it costs seconds and 200 MB), and tiktoken's own loader is not used, because
it asks the network when a file is missing or changed.
"""

from __future__ import annotations

import base64
import importlib.util
from functools import partial
from pathlib import Path
from threading import Lock

import tiktoken

O200K = "o200k_base"
CL100K = "cl100k_base"

# File name (tiktoken's cache key: the SHA-1 of the file's address) and split pattern of each encoding. Both are part of
# what the encoding's name means and never change; tests compare them with tiktoken's own.
_DEFINITIONS = {
    O200K: (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    CL100K: (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}
NAMES = tuple(_DEFINITIONS)

_loaded: dict[str, tiktoken.Encoding] = {}
_lock = Lock()


class EncodingMissingError(RuntimeError):
    """An encoding's rank file is not where litellm's wheel has it: the installation is broken."""


def encoding(name: str) -> tiktoken.Encoding:
    """The encoding `name`, loaded at its first use and once per process. Raises KeyError for a name not in `NAMES`."""
    found = _loaded.get(name)
    if found is None:
        with _lock:
            found = _loaded.get(name)
            if found is None:
                found = _loaded[name] = _load(name)
    return found


def warm() -> None:
    """Load the encoding of most models now, so that no request has to. Others wait for the first that needs them
    (a third of a second, once per process): each takes memory."""
    encoding(O200K)


def _load(name: str) -> tiktoken.Encoding:
    file_name, pattern = _DEFINITIONS[name]
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=_ranks(_folder() / file_name), special_tokens={})


def _folder() -> Path:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise EncodingMissingError("litellm, whose wheel carries the encodings, is not installed")
    return Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"


def _ranks(path: Path) -> dict[bytes, int]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise EncodingMissingError(f"the encoding file {path.name} cannot be read") from error
    decode = partial(base64.b64decode, validate=False)
    return {decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
