"""Exchanges: which messages belong together and may only be cut off together (semantics 1).

Everything is linear in the number of messages. An *index* counts the entries given, a *position* is the conversation's.
A *cut* is an index: entries[:cut] on one side, entries[cut:] on the other; an *edge* is a cut no exchange lies across.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from compaction_service.engine.types import Call, Entry, Exchange


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which results answer which calls, by index."""

    results: dict[int, list[int]]  # a message with calls -> the messages that hold results for it, in order
    unanswered: dict[int, list[Call]]  # a message with calls -> its calls without a result; absent: all answered
    caller: dict[int, int]  # a message with results -> the (latest) message whose calls they answer


def pair(entries: Sequence[Entry]) -> Pairing:
    """Pair results with calls: an id used again pairs with the nearest earlier open call (semantics 1)."""
    waiting: dict[str, list[tuple[int, int]]] = {}  # id -> open calls (message, number), nearest last
    results: dict[int, list[int]] = {}
    caller: dict[int, int] = {}
    for index, entry in enumerate(entries):
        facts = entry.facts
        for answer in facts.answers:
            if stack := waiting.get(answer.id):
                message, _ = stack.pop()
                found = results[message]
                if not found or found[-1] != index:
                    found.append(index)
                caller[index] = max(message, caller.get(index, message))
        if facts.calls:
            results[index] = []
            for number, call in enumerate(facts.calls):
                stack = waiting.get(call.id)
                if stack is None:
                    waiting[call.id] = [(index, number)]
                else:
                    stack.append((index, number))
    unanswered: dict[int, list[Call]] = {}
    for index, number in sorted(chain.from_iterable(waiting.values())):
        unanswered.setdefault(index, []).append(entries[index].facts.calls[number])
    return Pairing(results, unanswered, caller)


def group(entries: Sequence[Entry]) -> tuple[Exchange, ...]:
    """The exchanges of `entries`, in order and without a gap (semantics 1)."""
    pairing = pair(entries)
    last_assistant = last_index(entries, role="assistant")
    exchanges = []
    start, count = 0, len(entries)
    while start < count:
        if start not in pairing.results:  # makes no call: an exchange by itself
            exchanges.append(Exchange(start, start + 1, open=False, seen=True))
            start += 1
            continue
        end, newest_result, is_open = start + 1, -1, False
        index = start
        while index < end:  # an exchange may reach further while it is read: calls within calls
            if found := pairing.results.get(index):
                newest_result = max(newest_result, found[-1])
                end = newest_result + 1
            if index in pairing.unanswered and not entries[index].abandoned:
                is_open = True
            index += 1
        seen = newest_result == -1 or newest_result < last_assistant
        exchanges.append(Exchange(start, end, is_open, seen))
        start = end
    return tuple(exchanges)


def last_index(entries: Sequence[Entry], *, role: str) -> int:
    """The index of the newest message of that role, -1 where there is none."""
    return next((i for i in range(len(entries) - 1, -1, -1) if entries[i].facts.role == role), -1)


def exchange_at(exchanges: Sequence[Exchange], index: int) -> int:
    """The number of the exchange that holds entries[index]."""
    return bisect_right(exchanges, index, key=lambda exchange: exchange.start) - 1


def edge_before(exchanges: Sequence[Exchange], cut: int) -> int:
    """How many whole exchanges lie before `cut`: the cut moved back to an edge."""
    return bisect_right(exchanges, cut, key=lambda exchange: exchange.end)


def protected_from(entries: Sequence[Entry], exchanges: Sequence[Exchange]) -> int:
    """How many exchanges come before the first that may never be covered: an open one, one whose results were not
    seen, or an unanswered request (semantics 5)."""
    last_assistant = last_index(entries, role="assistant")
    for number, exchange in enumerate(exchanges):
        asks = exchange.end > last_assistant + 1 and any(
            entries[i].facts.request for i in range(max(exchange.start, last_assistant + 1), exchange.end)
        )
        if exchange.open or not exchange.seen or asks:
            return number
    return len(exchanges)


def last_completed(entries: Sequence[Entry], exchanges: Sequence[Exchange]) -> int:
    """How many exchanges there are up to the last completed response or seen tool exchange (semantics 5)."""
    for number in range(len(exchanges) - 1, -1, -1):
        exchange = exchanges[number]
        tools = exchange.end - exchange.start > 1 and exchange.seen and not exchange.open
        if tools or entries[exchange.start].facts.response:
            return number + 1
    return 0
