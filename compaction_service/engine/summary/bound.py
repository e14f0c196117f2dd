"""Keeping a summary within its bound (semantics 7, Bound)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .sections import item
from .span import Count
from .text import clean, edge, pieces, sentences

Step = Literal["fits", "again", "cut"]

MIN_GAIN = 0.1  # of the tokens before a pass
_LINE_CHARS = 600
_SHORT_LINE = 40  # tokens; a longer line is cut into its sentences
_MIN_BODY = 4  # tokens; a heading with less under it is not worth its room


def next_step(tokens_before: int | None, tokens_after: int, bound: int, passes_done: int, max_passes: int) -> Step:
    """What follows a summary of `tokens_after` tokens: nothing, another model pass, or the extractive cut.

    `tokens_before` is the text the last pass was given to shorten; None after the first summary, which shortened none.
    `passes_done` counts re-summarisations."""
    if tokens_after <= bound:
        return "fits"
    stalled = tokens_before is not None and tokens_after > tokens_before * (1 - MIN_GAIN)
    return "cut" if stalled or passes_done >= max_passes else "again"


def cut(text: str, bound: int, count: Count, prefix: str = "") -> str:
    """`prefix` and the text, within `bound` tokens, cut on sentence edges.

    Sections keep their order and headings, each gets an equal share of the room and what others do not need; in a
    checklist the open items come before the done ones. Where not one sentence fits, its beginning stays."""
    text = clean(text)
    if count(prefix + text) <= bound:
        return prefix + text
    room = bound - count(prefix)
    blocks = _blocks(text, count)
    while len(blocks) > 1 and sum(block.tokens + _MIN_BODY for block in blocks) > room:
        blocks.pop()
    # Counts of lines do not add up exactly to the count of their text: try with less room until it fits.
    for _ in range(8):
        result = prefix + _assemble(blocks, room, count)
        over = count(result) - bound
        if over <= 0:
            return result
        room -= over + 1 + max(0, room) // 50
    return clip(prefix + text, bound, count)


def clip(text: str, bound: int, count: Count) -> str:
    """The longest beginning found within `bound` tokens; cut where no grapheme cluster is broken."""
    tokens = count(text)
    while text and tokens > bound:
        size = min(int(len(text) * max(0, bound) / max(1, tokens)), int(len(text) * 0.95))
        text = text[: edge(text, size)].rstrip() if size else ""
        tokens = count(text)
    return text


@dataclass(slots=True)
class _Line:
    text: str
    tokens: int
    first: bool  # begins a line of the text; otherwise it goes on the line before
    rank: tuple[int, int]  # lower is kept first


@dataclass(slots=True)
class _Block:
    """A heading (or nothing, before the first) and the sentences under it."""

    heading: str
    tokens: int
    lines: list[_Line]
    need: int = 0


def _blocks(text: str, count: Count) -> list[_Block]:
    blocks = [_Block("", 0, [])]
    for line in text.splitlines():
        if line.startswith("#") and line.lstrip("#").startswith(" ") and len(line) < _LINE_CHARS:
            heading = line.strip()
            blocks.append(_Block(heading, count(heading) + 2, []))
        elif line.strip():
            blocks[-1].lines += _lines(line, count, len(blocks[-1].lines))
    for block in blocks:
        block.need = block.tokens + sum(line.tokens for line in block.lines)
    return [block for block in blocks if block.need]


def _lines(line: str, count: Count, at: int) -> Iterable[_Line]:
    checked = item(line)
    if checked or count(line) <= _SHORT_LINE:
        parts = pieces(line.rstrip(), _LINE_CHARS)
    else:
        parts = sentences(line)
        indent = line[: len(line) - len(line.lstrip())][:8]
        parts[:1] = [indent + part for part in parts[:1]]
    for number, part in enumerate(parts):
        # Plain lines and open items from the top, then what was done, the latest first.
        rank = (2, -at) if checked and checked["done"] else (1 if checked else 0, at + number)
        yield _Line(part, count(part) + 1, number == 0, rank)


def _assemble(blocks: Sequence[_Block], room: int, count: Count) -> str:
    out = []
    for block, share in zip(blocks, _shares(blocks, room), strict=True):
        if share >= block.tokens:
            out.append(f"{block.heading}\n{_body(block, share - block.tokens, count)}".strip())
    return "\n\n".join(part for part in out if part)


def _body(block: _Block, left: int, count: Count) -> str:
    kept: dict[int, str] = {}
    ranked = sorted(range(len(block.lines)), key=lambda n: block.lines[n].rank)
    for number in ranked:
        line = block.lines[number]
        if line.tokens <= left:
            kept[number] = line.text
            left -= line.tokens
    if not kept and ranked:
        kept[ranked[0]] = clip(block.lines[ranked[0]].text, left - 1, count)
    joints = ("\n" if block.lines[n].first or n - 1 not in kept else " " for n in sorted(kept))
    return "".join(joint + kept[n] for joint, n in zip(joints, sorted(kept), strict=True)).strip("\n")


def _shares(blocks: Sequence[_Block], room: int) -> list[int]:
    """Room for each block: small ones get what they need, the others split the rest evenly."""
    shares = [0] * len(blocks)
    left = max(0, room)
    waiting = sorted(range(len(blocks)), key=lambda n: blocks[n].need)
    for done, number in enumerate(waiting):
        shares[number] = min(blocks[number].need, left // (len(blocks) - done))
        left -= shares[number]
    return shares
