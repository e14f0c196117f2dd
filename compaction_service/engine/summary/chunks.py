"""A span cut into transcripts that each fit one call of the summariser (semantics 7, Input)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .span import Count, SpanMessage, exchanges, with_tool_names
from .text import pieces
from .transcript import Segment, lines, render_message, segments, time_mark, wrap

MIN_BUDGET = 128  # tokens; below it the markup of one message could fill a chunk
TAIL_TOKENS = 2000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rendered text for one call, the positions that are in it, wholly or in part, and its tokens."""

    text: str
    positions: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class _Shown:
    """A message, or a piece of one, rendered. Tokens include the line break that follows."""

    text: str
    position: int
    tokens: int
    time: str  # the mark to be told before it, where it was not told last; empty: unknown
    time_tokens: int

    @classmethod
    def of(cls, message: SpanMessage, text: str, count: Count) -> _Shown:
        time = time_mark(message.at)
        return cls(text, message.position, count(text) + 2, time, count(time) + 2 if time else 0)


def _cost(shown: Iterable[_Shown], told: str = "") -> int:
    """Tokens of messages one after another, with the times that are told between them."""
    tokens = 0
    for one in shown:
        if one.time and one.time != told:
            told = one.time
            tokens += one.time_tokens
        tokens += one.tokens
    return tokens


def _text(shown: Iterable[_Shown]) -> str:
    return "\n".join(lines((one.time, one.text) for one in shown))


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
    return _pack(_units(with_tool_names(messages), budget_tokens, count), budget_tokens, count)


def _pack(units: Iterator[list[_Shown]], budget: int, count: Count) -> Iterator[Chunk]:
    pending: list[_Shown] = []
    used = 0
    for unit in units:
        tokens = _cost(unit, pending[-1].time if pending else "")
        if pending and used + tokens > budget:
            yield _chunk(pending, count)
            pending, used, tokens = [], 0, _cost(unit)
        pending += unit
        used += tokens
    if pending:
        yield _chunk(pending, count)


def _chunk(shown: list[_Shown], count: Count) -> Chunk:
    text = _text(shown)
    return Chunk(text, tuple(dict.fromkeys(one.position for one in shown)), count(text))


def _units(messages: Sequence[SpanMessage], budget: int, count: Count) -> Iterator[list[_Shown]]:
    """What is kept in one piece: exchanges, else messages, else pieces of one."""
    for exchange in exchanges(messages):
        shown = [_Shown.of(message, render_message(message), count) for message in exchange]
        if _cost(shown) <= budget:
            yield shown
            continue
        for message, one in zip(exchange, shown, strict=True):
            if _cost([one]) <= budget:
                yield [one]
            else:
                yield from ([piece] for piece in _cut(message, budget, count))


def _cut(message: SpanMessage, budget: int, count: Count) -> Iterator[_Shown]:
    """The message's parts, and pieces of those too large, each behind the message's own mark."""
    number = 0
    for segment in segments(message):
        for text in _bodies(message, segment, budget, count):
            number += 1
            yield _Shown.of(message, wrap(message, str(Segment(segment.open, text, segment.close)), number), count)


def _bodies(message: SpanMessage, segment: Segment, budget: int, count: Count) -> Iterator[str]:
    frame = _cost([_Shown.of(message, wrap(message, str(Segment(segment.open, "", segment.close)), 10**6), count)])
    room = max(1, budget - frame - 2)
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
    chosen: list[_Shown] = []  # newest first
    used = 0
    for message in reversed(with_tool_names(messages)):
        shown = _Shown.of(message, render_message(message), count)
        tokens = _cost([shown], chosen[-1].time if chosen else "")
        if used + tokens > budget_tokens:
            if not chosen:
                chosen = _newest_pieces(message, budget_tokens, count)
            break
        chosen.append(shown)
        used += tokens
    return _text(reversed(chosen))


def _newest_pieces(message: SpanMessage, budget: int, count: Count) -> list[_Shown]:
    chosen: list[_Shown] = []
    for piece in reversed(list(_cut(message, max(MIN_BUDGET, budget // 4), count))):
        if _cost([*chosen, piece]) > budget:
            break
        chosen.append(piece)
    return chosen
