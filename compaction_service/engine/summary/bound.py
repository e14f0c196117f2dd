"""Keeping a summary within its bound (semantics 7, Bound)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .names import is_name_line, short_lines
from .sections import Item, item, meaning
from .select import Candidate, select, traits
from .span import Count
from .text import clean, edge, pieces, sentences

Step = Literal["fits", "again", "cut"]

MIN_GAIN = 0.1  # of the tokens before a pass
_LINE_CHARS = 600
_SHORT_LINE = 40  # tokens; a longer line is cut into its sentences
_MARK = re.compile(r"\s{0,8}(?:[-*+\u2022>]|\d{1,3}[.)])\s+(?:\[[ xX\u2713\u2714]?\]\s+)?|\s{1,8}")
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

    Sections keep their order and headings, each gets an equal share of the room and what others do not need. In it stay
    what it begins with, open items, then the sentences that add most (`select`), then done items, the newest of each
    first. Where not one sentence fits, its beginning stays."""
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
    """A sentence, or a line where that is short."""

    text: str
    tokens: int
    mark: str  # what begins its line in the text
    first: bool  # of its line; others go on the line before
    item: Item | None


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
            blocks[-1].lines += _lines(line, count)
    for block in blocks:
        block.need = block.tokens + sum(line.tokens for line in block.lines)
    return [block for block in blocks if block.need]


def _lines(line: str, count: Count) -> Iterator[_Line]:
    if is_name_line(line) and count(line) > _SHORT_LINE:
        for short in short_lines(line):
            yield _Line(short, count(short) + 1, "", True, None)
        return
    checked = item(line)
    found = _MARK.match(line)
    mark = found[0] if found else ""
    said = line[len(mark) :].rstrip()
    whole = checked is not None or count(line) <= _SHORT_LINE
    for number, part in enumerate(pieces(said, _LINE_CHARS) if whole else sentences(said)):
        yield _Line(part, count(mark + part) + 1, mark, number == 0, checked)


def _assemble(blocks: Sequence[_Block], room: int, count: Count) -> str:
    out = []
    for block, share in zip(blocks, _shares(blocks, room), strict=True):
        if share >= block.tokens:
            out.append(f"{block.heading}\n{_body(block, share - block.tokens, count)}".strip())
    return "\n\n".join(part for part in out if part)


def _body(block: _Block, left: int, count: Count) -> str:
    kept: dict[int, str] = {}
    for group in _ranked(block):
        lines = [block.lines[number] for number in group]
        chosen = group
        if sum(line.tokens for line in lines) > left:
            one_of_many = len(group) > 1 and left > 0
            candidates = [Candidate(traits(line.text), line.tokens) for line in lines] if one_of_many else []
            chosen = [group[place] for place in select(candidates, left)]
        for number in chosen:
            kept[number] = block.lines[number].text
            left -= block.lines[number].tokens
    if not kept and block.lines:
        best = next(group[0] for group in _ranked(block) if group)
        line = block.lines[best]
        kept[best] = clip(line.mark + line.text, left - 1, count).removeprefix(line.mark)
    out = ""
    for number in sorted(kept):
        line = block.lines[number]
        out += f" {kept[number]}" if number - 1 in kept and not line.first else f"\n{line.mark}{kept[number]}"
    return out.strip("\n")


def _ranked(block: _Block) -> Iterator[list[int]]:
    """The lines, those first that are the last to go: what the section begins with, and open items, the newest first;
    then what else is said; then what was done. Of files those on top."""
    numbers = range(len(block.lines))
    done = [number for number in numbers if (found := block.lines[number].item) and found["done"]]
    open_ = [number for number in numbers if (found := block.lines[number].item) and not found["done"]]
    plain = [number for number in numbers if not block.lines[number].item]
    one_by_one = plain if meaning(block.heading.strip("# ")) == "files" else plain[: plain[:1] == [0]]
    yield from ([number] for number in (*one_by_one, *reversed(open_)))
    yield plain[len(one_by_one) :][::-1]  # of what is worth the same the newest
    yield from ([number] for number in reversed(done))


def _shares(blocks: Sequence[_Block], room: int) -> list[int]:
    """Room for each block: small ones get what they need, the others split the rest evenly."""
    shares = [0] * len(blocks)
    left = max(0, room)
    waiting = sorted(range(len(blocks)), key=lambda n: blocks[n].need)
    for done, number in enumerate(waiting):
        shares[number] = min(blocks[number].need, left // (len(blocks) - done))
        left -= shares[number]
    return shares
