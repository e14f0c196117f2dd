"""A context as a projection of what is stored: nothing here is kept, and nothing stored is changed (semantics 1).

Reading the same parts always gives the same messages, and appending leaves the earlier ones as they are (invariant 6);
the providers' prompt caches live on this. Bodies are passed through by reference, never copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_service.engine.exchanges import Pairing, pair
from compaction_service.engine.formats.base import NO_RESULT, Format
from compaction_service.engine.types import JSON, Call, Entry, Summary


@dataclass(frozen=True, slots=True)
class Parts:
    """What a context is made of, in the order it is shown."""

    system: JSON = None
    tools: JSON = None
    summaries: tuple[Summary, ...] = ()  # active nodes, oldest first
    carried: tuple[Entry, ...] = ()  # covered messages shown all the same, by position
    tail: tuple[Entry, ...] = ()  # the messages after the last covered one
    summary_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A context as the provider takes it.

    `origins` has the positions shown in each message: none in what was made for the context, several where the format
    merges messages.
    """

    system: JSON  # what goes beside the messages; None where they begin with it
    messages: list[JSON]
    origins: list[tuple[int, ...]]


def render(fmt: Format, parts: Parts) -> Rendered:
    """The messages of a context: system, one message per summary, carried ones, tail (invariants 2, 4 and 6).

    Messages stored between a call and its results are shown after the last result. A call without a result gets a
    synthetic one, unless it is still open and nothing but results of its own exchange follows it. The format arranges
    what comes of it.
    """
    system = fmt.system_messages(parts.system)
    messages = [*system, *(fmt.summary_message(node.text, parts.summary_prefix) for node in parts.summaries)]
    origins: list[tuple[int, ...]] = [()] * len(messages)
    entries = (*parts.carried, *parts.tail)
    pairing = pair(entries)
    closed = _calls_to_close(entries, pairing)
    for index, entry in enumerate(entries):
        if index in pairing.caller:
            continue  # shown right after its call
        messages.append(_shown(fmt, entry))
        origins.append((entry.position,))
        for result in pairing.results.get(index, ()):
            if pairing.caller[result] == index:
                messages.append(_shown(fmt, entries[result]))
                origins.append((entries[result].position,))
        for call in closed.get(index, ()):
            messages.append(fmt.synthetic_result(call, NO_RESULT))
            origins.append(())
    beside = (parts.system, parts.tools)
    return Rendered(None if system else parts.system, *fmt.arrange(messages, origins, beside))


def part_tokens(parts: Parts, *, system_tokens: int, tools_tokens: int, synthetic_tokens: int) -> dict[str, int]:
    """Raw tokens of a context by part: system, tools, summaries, carried, tail.

    Each message is counted by itself, so this is what a context costs at most: a format that merges messages spares
    their overhead.
    `synthetic_tokens`: what one synthetic result costs. Those of abandoned calls are in their entry's `extra_tokens`.
    """
    entries = (*parts.carried, *parts.tail)
    closed = _calls_to_close(entries, pair(entries))
    carried, tail = (sum(entry.shown_tokens for entry in some) for some in (parts.carried, parts.tail))
    for index, calls in closed.items():
        if not entries[index].abandoned:
            carried += len(calls) * synthetic_tokens if index < len(parts.carried) else 0
            tail += len(calls) * synthetic_tokens if index >= len(parts.carried) else 0
    return {
        "system": system_tokens,
        "tools": tools_tokens,
        "summaries": sum(node.tokens for node in parts.summaries),
        "carried": carried,
        "tail": tail,
    }


def _calls_to_close(entries: Sequence[Entry], pairing: Pairing) -> dict[int, list[Call]]:
    """The calls shown with a synthetic result, by the index of their message: abandoned, or open and followed.

    A message that holds results and a request besides follows the calls it leaves open.
    """
    last = len(entries) - 1
    return {
        index: calls
        for index, calls in pairing.unanswered.items()
        if entries[index].abandoned
        or last - index > len(pairing.results[index])
        or any(entries[result].facts.request for result in pairing.results[index])
    }


def _shown(fmt: Format, entry: Entry) -> JSON:
    body = fmt.without_thinking(entry.body) if entry.thoughtless else entry.body
    if not entry.masked:
        return body
    return fmt.mask(body, entry.masked, [answer.name for answer in entry.facts.answers])
