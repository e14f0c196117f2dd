"""A span cut into transcripts that each fit one call of the summariser (semantics 7, Input)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .span import Count, SpanMessage, exchanges, with_tool_names
from .text import pieces
from .transcript import Segment, render_message, segments, with_times_once, wrap

MIN_BUDGET = 128  # tokens; below it the markup of one message could fill a chunk
TAIL_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rendered text for one call, the positions that are in it, wholly or in part, and its tokens."""

    text: str
    positions: tuple[int, ...]
    tokens: int


@dataclass(slots=True)
class _Unit:
    """What is kept in one piece: text, the positions in it, and tokens including the line break that follows."""

    text: str
    positions: tuple[int, ...]
    tokens: int


def split(messages: Sequence[SpanMessage], budget_tokens: int, count: Count) -> tuple[Chunk, ...]:
    """Chunks of at most `budget_tokens` each, in order; every position is in at least one.

    Cut between exchanges; inside an exchange larger than the budget between its messages; a single larger message in
    pieces. `count` must not grow by more than a token where two texts are joined. ValueError: budget under MIN_BUDGET.
    """
    return tuple(each(messages, budget_tokens, count))


def each(messages: Sequence[SpanMessage], budget_tokens: int, count: Count) -> Iterator[Chunk]:
    """The chunks of `split` one after another: nothing is rendered or counted much further than was asked for."""
    if budget_tokens < MIN_BUDGET:
        raise ValueError(f"a chunk needs at least {MIN_BUDGET} tokens, got {budget_tokens}")
    return _pack(_units(with_times_once(with_tool_names(messages)), budget_tokens, count), budget_tokens, count)


def _pack(units: Iterator[_Unit], budget: int, count: Count) -> Iterator[Chunk]:
    pending: list[_Unit] = []
    used = 0
    for unit in units:
        if pending and used + unit.tokens > budget:
            yield _chunk(pending, count)
            pending, used = [], 0
        pending.append(unit)
        used += unit.tokens
    if pending:
        yield _chunk(pending, count)


def _chunk(units: list[_Unit], count: Count) -> Chunk:
    text = "\n".join(unit.text for unit in units)
    positions = dict.fromkeys(position for unit in units for position in unit.positions)
    return Chunk(text, tuple(positions), count(text))


def _units(messages: Sequence[SpanMessage], budget: int, count: Count) -> Iterator[_Unit]:
    for exchange in exchanges(messages):
        rendered = [_Unit(text, (m.position,), count(text) + 2) for m in exchange for text in [render_message(m)]]
        total = sum(unit.tokens for unit in rendered)
        if total <= budget:
            yield _Unit("\n".join(u.text for u in rendered), tuple(p for u in rendered for p in u.positions), total)
            continue
        for message, unit in zip(exchange, rendered, strict=True):
            if unit.tokens <= budget:
                yield unit
            else:
                yield from _cut(message, budget, count)


def _cut(message: SpanMessage, budget: int, count: Count) -> Iterator[_Unit]:
    """The message's parts, and pieces of those too large, each in the message's own markup."""
    number = 0
    for segment in segments(message):
        for text in _bodies(message, segment, budget, count):
            number += 1
            rendered = wrap(message, str(Segment(segment.open, text, segment.close)), number)
            yield _Unit(rendered, (message.position,), count(rendered) + 2)


def _bodies(message: SpanMessage, segment: Segment, budget: int, count: Count) -> Iterator[str]:
    frame = count(wrap(message, str(Segment(segment.open, "", segment.close)), 10**6)) + 4
    room = max(1, budget - frame)
    size = max(1, int(len(segment.body) * room / max(1, count(segment.body))))
    # A stack, not a loop over sizes: a dense stretch (digits, CJK) is halved where it stands, the rest keeps its size.
    stack = pieces(segment.body, size)[::-1]
    while stack:
        body = stack.pop()
        if len(body) > 1 and count(body) > room:
            stack += pieces(body, (len(body) + 1) // 2)[::-1]
        else:
            yield body


def tail_end(messages: Sequence[SpanMessage], count: Count, budget_tokens: int = TAIL_TOKENS) -> str:
    """The end of the kept tail, rendered, at most `budget_tokens`: whole messages, or the end of the newest one."""
    chosen: list[str] = []
    used = 0
    for message in reversed(with_tool_names(messages)):
        text = render_message(message)
        tokens = count(text) + 2
        if used + tokens > budget_tokens:
            if not chosen:
                chosen = _newest_pieces(message, budget_tokens, count)
            break
        chosen.append(text)
        used += tokens
    return "\n".join(reversed(chosen))


def _newest_pieces(message: SpanMessage, budget: int, count: Count) -> list[str]:
    chosen: list[str] = []
    for unit in reversed(list(_cut(message, max(MIN_BUDGET, budget // 4), count))):
        budget -= unit.tokens
        if budget < 0:
            break
        chosen.append(unit.text)
    return chosen
