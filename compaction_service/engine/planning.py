"""Planning: what a compaction covers, and what stays to be read (semantics 5).

A plan is a pure function of the live messages and a few numbers. All tokens are raw counts; a caller with a calibrated
meter brings `limit` to raw tokens first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from compaction_service.engine.exchanges import edge_before, exchange_at, group, last_completed, protected_from
from compaction_service.engine.types import Entry, Exchange, Plan

NOTHING_LIVE = "nothing_live"  # there are no live messages
PROTECTED = "protected"  # the oldest live exchange is open, unseen or unanswered
NOTHING_OLDER = "nothing_older"  # no whole exchange is older than what is to stay
ONLY_CARRIED = "only_carried"  # whatever could be covered would be shown verbatim all the same


def plan(
    live: Sequence[Entry],
    carried_now: Sequence[Entry] = (),
    *,
    preserve_recent_turns: int,
    keep_last_user_request: bool,
    keep_first_user_request: bool,
    target: float,
    limit: int,
    room: int,
    fixed_tokens: int,
    kept_summaries_tokens: int,
    replaced_summaries_tokens: int = 0,
    ratio: float,
    bound: int,
    up_to: int | None = None,
    before: int | None = None,
) -> Plan:
    """What a compaction of `live` would cover (semantics 5).

    `live`: the messages after the last covered one, without the system message. `carried_now`: covered messages shown
    today, in whole exchanges; where the policy has come to keep a first or last request that is covered and not shown,
    pass its exchange with them. `fixed_tokens`: system and tools. `kept_summaries_tokens`: active nodes that stay;
    `replaced_summaries_tokens`: those the new summary replaces. `ratio`, `bound`: of the new summary (semantics 7).

    `target`: the share of `limit` to get under, where kept exchanges are given up for it, oldest first; 0: they are
    kept. Whatever it is, a context over `room` (window - reserve) gives them up until it fits.

    `up_to` (a position, included) and `before` (the position of the exchange that calls the compact tool) say how far
    to cover instead of `preserve_recent_turns`; `target` then goes no further than they ask.

    Nothing to cover: `irreducible` is one of the codes above, `predicted_tokens` the floor: the context as it is.
    """
    exchanges = group(live)
    requests = _kept_requests([*carried_now, *live], first=keep_first_user_request, last=keep_last_user_request)
    staying = _staying(live, exchanges, requests)
    older = group(carried_now)
    standing = _members(carried_now, older, _staying(carried_now, older, requests))
    costs = _Costs.of(
        live,
        exchanges,
        staying,
        base=fixed_tokens + kept_summaries_tokens + _tokens(standing),
        replaced=replaced_summaries_tokens,
        ratio=ratio,
        bound=bound,
    )

    today = fixed_tokens + kept_summaries_tokens + replaced_summaries_tokens + _tokens(carried_now) + costs.shown[-1]
    aim = target * limit if target > 0 else room if today > room else inf
    protected = protected_from(live, exchanges)
    asked, most = _asked(live, exchanges, preserve_recent_turns, up_to, before)
    most = min(most, protected)
    least = next((number for number in range(len(exchanges)) if number not in staying), len(exchanges)) + 1
    count = min(asked, most)
    while count < most and (count < least or costs.context(count) > aim):
        count += 1

    if count < least:
        return Plan(
            covered=(),
            kept=_positions(live),
            carried=_positions(carried_now),
            span_tokens=0,
            freed_tokens=0,
            summary_target=0,
            predicted_tokens=today,
            target_reached=_reached(today, target, limit),
            irreducible=_reason(live, protected, most),
        )
    cut = exchanges[count - 1].end
    newly = _members(live, exchanges, {number for number in staying if number < count})
    return Plan(
        covered=_positions(live[:cut]),
        kept=_positions(live[cut:]),
        carried=_positions([*standing, *newly]),
        span_tokens=costs.span(count),
        freed_tokens=costs.span(count) - costs.verbatim[count] + _tokens(carried_now) - _tokens(standing),
        summary_target=costs.summary(count),
        predicted_tokens=costs.context(count),
        target_reached=_reached(costs.context(count), target, limit),
    )


def carried_after_pin(
    carried: Sequence[int], exchange: Sequence[Entry], requests: Collection[int] = ()
) -> tuple[int, ...]:
    """The carried positions after a message of a covered `exchange` was pinned or unpinned (semantics 1).

    `exchange`: its whole exchange, flags as they are now. `requests`: positions carried as first or last user request.
    """
    positions = {entry.position for entry in exchange}
    stays = any(entry.pinned or entry.position in requests for entry in exchange)
    return tuple(sorted(positions.union(carried) if stays else set(carried) - positions))


@dataclass(frozen=True, slots=True)
class _Costs:
    """Raw tokens by the number of exchanges covered, from sums: each cut tried costs the same."""

    base: int  # what no cut changes
    replaced: int
    ratio: float
    bound: int
    shown: list[int]  # of the oldest n exchanges as shown today
    verbatim: list[int]  # of those among them that stay, carried

    @classmethod
    def of(
        cls,
        live: Sequence[Entry],
        exchanges: Sequence[Exchange],
        staying: Collection[int],
        *,
        base: int,
        replaced: int,
        ratio: float,
        bound: int,
    ) -> _Costs:
        by_index = [0, *accumulate(entry.shown_tokens for entry in live)]
        tokens = [by_index[exchange.end] - by_index[exchange.start] for exchange in exchanges]
        stay = (cost if number in staying else 0 for number, cost in enumerate(tokens))
        return cls(base, replaced, ratio, bound, [0, *accumulate(tokens)], [0, *accumulate(stay)])

    def span(self, count: int) -> int:
        return self.shown[count]

    def summary(self, count: int) -> int:
        """The target: what is compressed already is asked to be no shorter, so that a rolling summary keeps what it has
        until it comes to its bound."""
        return min(self.bound, max(100, self.replaced + int(self.shown[count] / self.ratio)))

    def context(self, count: int) -> int:
        return self.base + self.summary(count) + self.verbatim[count] + self.shown[-1] - self.shown[count]


def _asked(
    live: Sequence[Entry], exchanges: Sequence[Exchange], turns: int, up_to: int | None, before: int | None
) -> tuple[int, int]:
    """How many exchanges to cover, and how many at most where that is not enough."""
    if up_to is not None:
        count = edge_before(exchanges, bisect_right(live, up_to, key=lambda entry: entry.position))
    elif before is not None:
        count = edge_before(exchanges, bisect_left(live, before, key=lambda entry: entry.position))
    elif turns == 0:
        count = last_completed(live, exchanges)
    else:
        keep = max(1, min(2 * turns, len(live) - 2))
        return edge_before(exchanges, len(live) - keep), max(0, len(exchanges) - 1)
    return count, count


def _kept_requests(entries: Sequence[Entry], *, first: bool, last: bool) -> set[int]:
    """Positions of the first and the last user request, as far as the policy keeps them."""
    ends = (*((entries,) if first else ()), *((reversed(entries),) if last else ()))
    found = (next((entry.position for entry in end if entry.facts.request), None) for end in ends)
    return {position for position in found if position is not None}


def _staying(entries: Sequence[Entry], exchanges: Sequence[Exchange], requests: Collection[int]) -> set[int]:
    """The numbers of the exchanges to be shown verbatim even when covered: they hold a pin or a kept request."""
    stays = (index for index, entry in enumerate(entries) if entry.pinned or entry.position in requests)
    return {exchange_at(exchanges, index) for index in stays}


def _members(entries: Sequence[Entry], exchanges: Sequence[Exchange], numbers: Collection[int]) -> list[Entry]:
    return [entry for number in sorted(numbers) for entry in entries[exchanges[number].start : exchanges[number].end]]


def _reached(tokens: int, target: float, limit: int) -> bool:
    return tokens <= target * limit if target > 0 else tokens < limit


def _reason(live: Sequence[Entry], protected: int, most: int) -> str:
    if not live:
        return NOTHING_LIVE
    if protected == 0:
        return PROTECTED
    return ONLY_CARRIED if most else NOTHING_OLDER


def _tokens(entries: Sequence[Entry]) -> int:
    return sum(entry.shown_tokens for entry in entries)


def _positions(entries: Sequence[Entry]) -> tuple[int, ...]:
    return tuple(entry.position for entry in entries)
