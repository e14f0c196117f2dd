"""Making a context fit that does not, without a model and without changing anything stored.

What is lost goes in this order: thinking, where the model refuses it once anything before it is lost; old tool results,
the oldest exchanges (one extractive summary stands for them), the middle of the newest exchange's results, then of its
other texts, then of the summaries; at the very last everything but what still fits beside the last user request. Tokens
are raw, and counted again only for what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compaction_service.engine.exchanges import group, pair
from compaction_service.engine.formats.base import Format
from compaction_service.engine.projection import Parts, part_tokens
from compaction_service.engine.shortening import Count, Text, shorten_all
from compaction_service.engine.types import JSON, Entry, Summary

Extract = Callable[[Sequence[Entry], int], Summary]

# The length a summary aims at, as in semantics 7: a share of what it replaces, but not less than this many tokens.
_RATIO = 8
_LEAST_SUMMARY = 100


@dataclass(frozen=True, slots=True)
class Fitted:
    """Parts of at most the budget. `degraded`: something was left out to get there."""

    parts: Parts
    tokens: int
    degraded: bool


class Overflow(Exception):  # noqa: N818 - the name says what it is, and OverflowError is taken
    """System, tools and the last user request alone are over the budget. `numbers`: tokens of each, and the budget."""

    def __init__(self, numbers: dict[str, int]) -> None:
        super().__init__("The context cannot be made to fit.")
        self.numbers = numbers


def fit(
    fmt: Format,
    parts: Parts,
    *,
    budget: int,
    system_tokens: int,
    tools_tokens: int,
    synthetic_tokens: int,
    count: Count,
    extract: Extract,
    keeps_thinking: bool = True,
) -> Fitted:
    """Parts of at most `budget` tokens: the same ones if they fit, else degraded just as far as needed.

    `count`: tokens of a text. `extract(entries, tokens)`: an extractive summary of these messages in at most so many
    tokens. Overflow only if system, tools and the last user request alone do not fit. Where that request holds tool
    results, its exchange in its shortest form counts; where there is no request, the newest exchange or a
    summary of it.
    `keeps_thinking`: it may be shown though what stood before it was left out.
    """

    def cost(some: Parts) -> int:
        breakdown = part_tokens(
            some, system_tokens=system_tokens, tools_tokens=tools_tokens, synthetic_tokens=synthetic_tokens
        )
        return sum(breakdown.values())

    def overflow(request: int) -> Overflow:
        return Overflow(
            {"budget": budget, "system": system_tokens, "tools": tools_tokens, "last_user_request": request}
        )

    request = _last_request(parts)
    if request and not request.facts.answers and system_tokens + tools_tokens + request.shown_tokens > budget:
        raise overflow(request.shown_tokens)  # whatever else is left out
    tokens = cost(parts)
    degraded = False
    ways = _Ways(fmt, count, extract, synthetic_tokens, budget - system_tokens - tools_tokens)
    first = () if keeps_thinking else (ways.thinking,)
    for way in (*first, ways.masks, ways.cut, ways.results, ways.texts, ways.summaries, ways.least):
        if tokens <= budget:
            break
        changed = way(parts, tokens - budget)
        if (fewer := cost(changed)) < tokens:
            parts, tokens, degraded = changed, fewer, True
    if tokens > budget:
        raise overflow(tokens - system_tokens - tools_tokens)
    return Fitted(parts, tokens, degraded)


@dataclass(frozen=True, slots=True)
class _Ways:
    """Each way takes parts that are `excess` tokens too many, and gives parts with fewer, if it can."""

    fmt: Format
    count: Count
    extract: Extract
    synthetic_tokens: int
    room: int  # tokens for all but system and tools

    def thinking(self, parts: Parts, excess: int) -> Parts:  # noqa: ARG002 - all or nothing
        """No message with its thinking: a signature holds only behind what stood before it."""
        carried, tail = ([entry.without_thinking() for entry in some] for some in (parts.carried, parts.tail))
        return replace(parts, carried=tuple(carried), tail=tuple(tail))

    def masks(self, parts: Parts, excess: int) -> Parts:
        """Results of the tail that were seen as their placeholders, oldest first and as few as will do: the newest,
        which `keep_tool_results` kept, go last. Pinned messages are left alone."""
        tail = list(parts.tail)
        for exchange in group(tail):
            if not exchange.seen:
                continue
            for index in range(exchange.start, exchange.end):
                if excess <= 0:
                    return replace(parts, tail=tuple(tail))
                if tail[index].facts.answers and not tail[index].pinned:
                    before = tail[index].shown_tokens
                    tail[index] = tail[index].mask_oldest(excess)
                    excess -= before - tail[index].shown_tokens
        return replace(parts, tail=tuple(tail))

    def cut(self, parts: Parts, excess: int) -> Parts:
        """The oldest exchanges as one summary: as few as will do, not the newest; pins and the request stay."""
        request = _last_request(parts)
        span: list[Entry] = []
        spared: list[Entry] = []
        freed = end = 0
        for exchange in group(parts.tail)[:-1]:
            entries = parts.tail[exchange.start : exchange.end]
            if any(entry.pinned or entry is request for entry in entries):
                spared += entries
                continue
            span += entries
            freed += sum(entry.shown_tokens for entry in entries)
            end = exchange.end
            if freed - _summary_length(freed) >= excess:
                break
        if not span:
            return parts
        asked = max(_LEAST_SUMMARY, min(_summary_length(freed), freed - excess))
        carried = (*parts.carried, *(entry for entry in spared if entry.position <= span[-1].position))
        summaries = (*parts.summaries, self.extract(span, asked))
        return replace(parts, summaries=summaries, carried=carried, tail=parts.tail[end:])

    def results(self, parts: Parts, excess: int) -> Parts:
        """The newest exchange's results as head and tail, the largest first."""
        older, newest = _split(parts)
        places, texts = [], []
        for number, entry in enumerate(newest):
            shown = {part.id: part.text for part in self.fmt.parts(entry.body) if part.kind == "result"}
            for index, answer in enumerate(entry.facts.answers):
                if answer.saving > 0 and index not in entry.masked:
                    tokens = answer.saving + self.count(self.fmt.placeholder(answer.name))
                    places.append((number, index))
                    texts.append(Text(shown[answer.id], tokens, f"position {entry.position}"))
        shorter = shorten_all(texts, excess, self.count)
        for (number, index), old, new in zip(places, texts, shorter, strict=True):
            if new is not old:
                body = self.fmt.shorten(newest[number].body, index, new.text)
                newest[number] = _with_body(newest[number], body, new.tokens - old.tokens)
        return replace(parts, tail=(*older, *newest))

    def texts(self, parts: Parts, excess: int) -> Parts:
        """The text of the newest exchange's other messages likewise, but for the last user request."""
        older, newest = _split(parts)
        request = _last_request(parts)
        numbers, texts = [], []
        for number, entry in enumerate(newest):
            if entry is request or entry.facts.answers:
                continue
            found = [part.text for part in self.fmt.parts(entry.body) if part.kind == "text"]
            if tokens := sum(map(self.count, found)):
                numbers.append(number)
                texts.append(Text("\n".join(found), tokens, f"position {entry.position}"))
        for number, old, new in zip(numbers, texts, shorten_all(texts, excess, self.count), strict=True):
            if new is not old:
                body = self.fmt.shorten_text(newest[number].body, new.text)
                newest[number] = _with_body(newest[number], body, new.tokens - old.tokens)
        return replace(parts, tail=(*older, *newest))

    def summaries(self, parts: Parts, excess: int) -> Parts:
        """The summaries likewise."""
        texts = [
            Text(node.text, self.count(node.text), f"positions {node.from_position} to {node.to_position}")
            for node in parts.summaries
        ]
        shorter = shorten_all(texts, excess, self.count)
        nodes = (
            replace(node, text=new.text, tokens=node.tokens + new.tokens - old.tokens)
            for node, old, new in zip(parts.summaries, texts, shorter, strict=True)
        )
        return replace(parts, summaries=tuple(nodes))

    def least(self, parts: Parts, excess: int) -> Parts:  # noqa: ARG002 - counts up from nothing
        """The last user request, and beside it what fits of the newest exchange, summaries and older exchanges."""
        entries = (*parts.carried, *parts.tail)
        exchanges = [entries[exchange.start : exchange.end] for exchange in group(entries)]
        request = _last_request(parts)
        if request is None or request.facts.answers:  # results cannot be shown without their call
            anchor = next((some for some in exchanges if request in some), exchanges[-1] if exchanges else ())
        else:
            anchor = (request,)
        chosen = {entry.position for entry in anchor}
        others = [some for some in reversed(exchanges) if not any(entry.position in chosen for entry in some)]
        nodes: list[Summary] = []
        left = self.room - self._most(anchor)
        if left < 0 and anchor and request is None:  # nobody asked for it word for word
            node = self.extract(anchor, self.room)
            if node.tokens <= self.room:
                nodes, chosen, left = [node], set(), self.room - node.tokens
        pieces: list[Summary | Sequence[Entry]] = [*others[:1], *reversed(parts.summaries), *others[1:]]
        for piece in pieces:
            tokens = piece.tokens if isinstance(piece, Summary) else self._most(piece)
            if tokens > left:
                continue
            left -= tokens
            if isinstance(piece, Summary):
                nodes.insert(0, piece)
            else:
                chosen.update(entry.position for entry in piece)
        return replace(
            parts,
            summaries=tuple(nodes),
            carried=tuple(entry for entry in parts.carried if entry.position in chosen),
            tail=tuple(entry for entry in parts.tail if entry.position in chosen),
        )

    def _most(self, exchange: Sequence[Entry]) -> int:
        """What an exchange costs with each of its calls answered."""
        unanswered = pair(exchange).unanswered
        made_up = sum(len(calls) for index, calls in unanswered.items() if not exchange[index].abandoned)
        return sum(entry.shown_tokens for entry in exchange) + made_up * self.synthetic_tokens


def _summary_length(span_tokens: int) -> int:
    return max(_LEAST_SUMMARY, span_tokens // _RATIO)


def _last_request(parts: Parts) -> Entry | None:
    return next((entry for entry in reversed((*parts.carried, *parts.tail)) if entry.facts.request), None)


def _split(parts: Parts) -> tuple[Sequence[Entry], list[Entry]]:
    """The tail up to its newest exchange, and that exchange."""
    exchanges = group(parts.tail)
    start = exchanges[-1].start if exchanges else 0
    return parts.tail[:start], list(parts.tail[start:])


def _with_body(entry: Entry, body: JSON, more: int) -> Entry:
    return replace(entry, body=body, tokens=entry.tokens + more)
