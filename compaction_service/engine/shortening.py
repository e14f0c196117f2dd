"""Texts shown as head and tail, the middle left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Text:
    """A text that may lose its middle. `tokens` of it, and the `place` the marker names: `position 7`."""

    text: str
    tokens: int
    place: str


def shorten_all(texts: Sequence[Text], excess: int, count: Count) -> list[Text]:
    """The texts with `excess` tokens fewer in all, as far as that can be: the largest give first, down to one level.

    Each is counted again only where it was cut. A text is never made larger.
    """
    level = _level([text.tokens for text in texts], excess)
    return [_head_and_tail(text, level, count) if text.tokens > level else text for text in texts]


def _level(sizes: Sequence[int], excess: int) -> int:
    """The largest cap under which the sizes sum to `excess` less; 0 if there is none."""
    room, left = sum(sizes) - excess, len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(0, room // left)
        room, left = room - size, left - 1
    return max(sizes, default=0)


def _head_and_tail(text: Text, room: int, count: Count) -> Text:
    """The text in at most `room` tokens, or as the marker alone where even that is more."""
    kept = len(text.text) * room // text.tokens  # a guess by its own density; each try that is too long keeps less
    while True:
        marker = f"[{len(text.text) - kept} characters left out, {text.place}]"
        head, tail = text.text[: (kept + 1) // 2], text.text[len(text.text) - kept // 2 :]
        short = f"{head}\n{marker}\n{tail}" if kept else marker
        tokens = count(short)
        if tokens <= room or not kept:
            return Text(short, tokens, text.place) if tokens < text.tokens else text
        kept = min(kept * 49 // 50, kept * room // tokens)
