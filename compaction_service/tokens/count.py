"""How many tokens a text has, in linear time whatever it holds (semantics 3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from compaction_service.tokens.encodings import encoding as load

# tiktoken first splits a text into words and then merges inside each. A word of a megabyte (one character repeated, a
# picture in base64, blanks) is slow, and at some lengths makes it panic. So no run of blanks or of non-blanks reaches
# it that is longer than about two of these.
_RUN = 512
_SAME_KIND = re.compile(r"\s+|\S+")
# Where tiktoken ends a word anyway, whatever comes before or after: a cut there changes no count.
_WORD_END = re.compile(r"[^\W\d_](?=[0-9!-&(-/:-@\[-^`{-~、。〈-】！-／：-＠])")

_encoders: dict[str, Callable[[str], list[int]]] = {}  # found faster than through the encoding: short texts are many


def count_text(text: str, encoding: str) -> int:
    """Tokens of `text` in `encoding`: `encode_ordinary`'s number, special-token text being ordinary text.

    Takes any str and never raises on one: a lone surrogate counts as U+FFFD. Only a run of more than 512 characters
    without a blank, a digit or a punctuation mark after a letter is cut where tiktoken would not cut it, and may count
    a token more per cut.
    """
    encode = _encoders.get(encoding) or _encoder(encoding)
    cuts = _cuts(text) if len(text) > 2 * _RUN else []
    if not cuts:
        return len(encode(text))
    try:
        text.encode()
    except UnicodeEncodeError:  # replaced once here, as tiktoken does, but not once a piece
        return count_text(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), encoding)
    edges = (0, *cuts, len(text))
    return sum(len(encode(text[start:end])) for start, end in pairwise(edges))


def _encoder(encoding: str) -> Callable[[str], list[int]]:
    found = _encoders[encoding] = load(encoding).encode_ordinary
    return found


def _cuts(text: str) -> list[int]:
    """Where to cut so that no piece holds a run of more than 2 * _RUN characters, in order.

    A look at every _RUN-th character finds each run that long, and costs prose next to nothing.
    """
    cuts = []
    at, size = _RUN, len(text)
    while at < size:
        run = _SAME_KIND.match(text, at)
        end = run.end() if run else size
        while end - at >= _RUN:
            word_end = _WORD_END.search(text, at, at + _RUN)
            at = word_end.end() if word_end else at
            cuts.append(at)
            at += _RUN
        at = end + _RUN
    return cuts
