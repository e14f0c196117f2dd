"""Text of any kind cut into sentences and words, in linear time and without raising.

sentencex looks for the end of a quotation or bracket from every opening one, which is quadratic on a text full of
openings; it refuses lone surrogates, never splits at a single line break, and panics on a no-break space before an
initial ("M.\\u00a0B."). So it only ever sees short, clean pieces of one line with plain blanks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from sentencex import segment

PIECE_CHARS = 600  # the longest sentence; also bounds sentencex's quadratic cases to under a second per megabyte

_ODD_BLANKS = re.compile(r"[^\S ]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,16}[@-~]")
# An end of sentence before the end of the text: worth asking sentencex. Latin, CJK, Arabic, Indic, Armenian, ...
_INNER_END = re.compile(
    "[.!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964\u0965\u0589\u1362\u104a\u104b\u17d4]"
    "['\"\u2019\u201d\xbb)\\]]{0,3}(?:\\s|(?=[^\x00-\x7f]))"
)
# What separates words: blanks, controls and punctuation of ASCII, Latin-1, CJK, Arabic and Indic, arrows and boxes.
# Named by what it leaves out, so that combining vowels (Thai, Hindi) stay inside their words.
_WORD = re.compile(
    "[^\\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"
    "\u0e2f\u104a\u104b\u17d4-\u17da\u2000-\u206f\u2190-\u2bff\u2e00-\u2e7f\u3000-\u303f\u30fb\ufe30-\ufe6f\ufffd"
    "\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
)
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_WORD_CHARS = 64  # a longer "word" is no word; its beginning identifies it well enough


def clean(text: str) -> str:
    """The text without NUL; surrogate pairs joined, lone ones replaced by U+FFFD. Encodes as UTF-8."""
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def edge(text: str, at: int) -> int:
    """The nearest place at or before `at` where a cut leaves no grapheme cluster broken (as a few steps tell)."""
    start = at
    while 0 < at < len(text) and start - at < 16 and _joins(text[at - 1], text[at]):
        at -= 1
    return at or start


def _joins(left: str, right: str) -> bool:
    if right.isascii() and left.isascii():
        return left == "\r" and right == "\n"
    return (
        left == "\u200d"
        or right in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")
        or unicodedata.category(right) in ("Mn", "Mc", "Me")
    )


def pieces(text: str, size: int, marks: Sequence[str] = ("\n", " ")) -> list[str]:
    """The text in pieces of at most `size` characters, cut after the first of `marks` that is in a piece's second half
    (a line, a blank), else at any safe place. Joined they give the text again."""
    out = []
    start = 0
    while len(text) - start > size:
        end = start + size
        half = start + size // 2
        for mark in marks:
            found = text.rfind(mark, half, end)
            if found >= 0:
                end = found + len(mark)
                break
        else:
            end = max(edge(text, end), start + 1)
        out.append(text[start:end])
        start = end
    out.append(text[start:])
    return out


# A long line is cut where a sentence seems to end: a sentence in two pieces would come back in two places.
_SENTENCE_EDGES = (". ", "! ", "? ", "。", "！", "？", "; ", " ")


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped and never blank; a line break always ends one, as in lists, code and logs."""
    text = clean(text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    out: list[str] = []
    for line in text.splitlines():
        for piece in pieces(_ODD_BLANKS.sub(" ", line), PIECE_CHARS, _SENTENCE_EDGES):
            found = segment("en", piece) if _INNER_END.search(piece) else (piece,)
            out += [s for s in map(str.strip, found) if s]
    return out


def words(text: str) -> list[str]:
    """Lower-case words; scripts written without blanks (Chinese, Japanese, Thai, ...) give their character pairs."""
    out: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii() or not _HAS_UNSPACED.search(word):
            out.append(word[:_WORD_CHARS])
            continue
        for run in _RUN.findall(word):
            if _HAS_UNSPACED.match(run):
                out += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
            else:
                out.append(run[:_WORD_CHARS])
    return out
