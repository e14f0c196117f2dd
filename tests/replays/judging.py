"""What a context must be, given what was appended: nothing here knows how the service made it.

`stored` are the messages by position, the first at index 0. A degraded context leaves out what it must, so only
validity, size and the last request are asked of it.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from compaction_service.tokens.messages import Counter
from tests.invariants import context_problems
from tests.transcripts import asks, blocks

JSON = Any

MASK, NO_RESULT = "[Previous: used ", "No result: "  # how what the service puts for a result begins
LABEL = "<conversation_summary>"
OPENING = "[The conversation begins with the assistant.]"


class Recount:
    """A counter that counts each message once, however many contexts show it."""

    def __init__(self, counter: Counter) -> None:
        self.text, self.system, self.tools = counter.text, counter.system, counter.tools
        self.factor, self.method = counter.factor, counter.method
        self._message = lru_cache(maxsize=None)(lambda fmt, text: counter.message(fmt, json.loads(text)))

    def message(self, fmt: str, message: JSON) -> int:
        tokens: int = self._message(fmt, json.dumps(message))
        return tokens


def size_problems(fmt: str, context: JSON, counter: Recount, *, reserve: int, system: JSON) -> list[str]:
    """A context its provider would refuse, or one that is larger than it says or may be."""
    return context_problems(context, counter, reserve=reserve, system=system, format=fmt)  # type: ignore[arg-type]


def coverage_problems(fmt: str, context: JSON, stored: Sequence[JSON], system: JSON) -> list[str]:
    """Every position is covered or shown, once; carried ones are covered and shown; nothing else is there."""
    covered = context["covered"]["to"] if context["covered"] else 0
    carried = context["carried"]
    if carried and (sorted(set(carried)) != carried or carried[-1] > covered):
        return [f"carried {carried}, covered to {covered}"]
    if bool(covered) != bool(context["summaries"]):
        return [f"covered to {covered} by {len(context['summaries'])} summaries"]
    positions = [*carried, *range(covered + 1, len(stored) + 1)]
    wanted = [stored[position - 1] for position in positions]
    masked = {index for index, position in enumerate(positions) if position in set(context["masked"])}
    shown = context["messages"][1 if fmt == "openai" and system is not None else 0 :]
    found = list(_results(shown, wanted, masked))
    skip = len(context["summaries"])
    for of_assistant in (True, False):
        said, due = _said(shown, of_assistant), _said(wanted, of_assistant)
        if not of_assistant:
            said = _without_labels(said, skip)
            if fmt != "openai":  # a system message may move behind the user turn it stands in
                said, due = sorted(said), sorted(due)
        if said != due:
            found.append(f"{'assistant' if of_assistant else 'user'}: {_difference(said, due)}")
    return found


def request_problems(fmt: str, context: JSON, stored: Sequence[JSON], kept: bool) -> list[str]:
    """The last user request is missing, though it has no answer yet or the policy keeps it (`kept`)."""
    place = next((i for i in range(len(stored) - 1, -1, -1) if asks(fmt, stored[i])), None)
    if place is None or not (kept or all(message["role"] != "assistant" for message in stored[place + 1 :])):
        return []
    request = stored[place]
    if fmt == "openai":
        there = request in context["messages"]
    else:
        there = not Tally(_said([request], of_assistant=False)) - Tally(_said(context["messages"], of_assistant=False))
    return [] if there else ["the last user request is missing"]


def _results(shown: Iterable[JSON], wanted: Sequence[JSON], masked: set[int]) -> Iterator[str]:
    """Results that are missing, or that nobody gave. A masked message has some as placeholders. An id that its provider
    refuses is shown as another: whether calls and results pair is the validator's."""
    left = Tally(one for message in shown for one in _answers(message))
    plain = Tally(one for i, message in enumerate(wanted) if i not in masked for one in _answers(message))
    missing = plain - left
    left -= plain
    for index in masked:
        for id_, text in _answers(wanted[index]):
            found = next((one for one in left if one[0] == id_ and one[1].startswith(MASK)), (id_, text))
            if left[found]:
                left -= Tally([found])
            else:
                missing[(id_, text)] += 1
    for id_, text in list(missing.elements()):
        if under_another_id := [one for one in left if one[1] == text or (one[1].startswith(MASK) and one[0] != id_)]:
            left -= Tally(under_another_id[:1])
            missing -= Tally([(id_, text)])
    yield from (f"the result of {id_} is missing" for id_, _ in missing)
    yield from (f"a result of {id_} that nobody gave" for id_, text in left if not text.startswith(NO_RESULT))


def _answers(message: JSON) -> Iterator[tuple[str, str]]:
    if message["role"] in ("tool", "function"):
        yield message.get("tool_call_id") or message["name"], _speech(message)
    for block in blocks(message):
        if block["type"] == "tool_result":
            yield block["tool_use_id"], _speech(block)


def _speech(holder: JSON) -> str:
    """Its texts that are not blank, and how many other parts it has."""
    parts = blocks(holder)
    texts = [part["text"] for part in parts if part["type"] == "text" and part["text"].strip()]
    others = sum(part["type"] != "text" for part in parts)
    return "\n".join(texts) + f" +{others}" * bool(others)


def _said(messages: Iterable[JSON], of_assistant: bool) -> list[str]:
    """What the assistant, or everybody else, says besides results: text by text, in order. Thinking apart: some of it
    may not be sent again, and its bytes are the validator's."""
    said = []
    for message in messages:
        if message["role"] in ("tool", "function") or (message["role"] == "assistant") != of_assistant:
            continue
        for block in blocks(message):
            kind = block["type"]
            if kind == "text":
                said += [block["text"]] if block["text"].strip() else []
            elif kind not in ("tool_result", "thinking", "redacted_thinking"):
                said.append(_without_id(block))
        said += [_without_id(call) for call in message.get("tool_calls") or ()]
    return said


def _without_id(part: JSON) -> str:
    return json.dumps({name: value for name, value in part.items() if name != "id"}, sort_keys=True)


def _without_labels(said: list[str], summaries: int) -> list[str]:
    """Without the summaries, which come first, and the opening of a conversation that the assistant begins."""
    ours = [i for i, text in enumerate(said) if LABEL in text][:summaries]
    rest = [text for i, text in enumerate(said) if i not in ours]
    return rest[1:] if rest[:1] == [OPENING] else rest


def _difference(said: Sequence[str], due: Sequence[str]) -> str:
    more, fewer = Tally(said) - Tally(due), Tally(due) - Tally(said)
    place = next((i for i, (one, other) in enumerate(zip(said, due, strict=False)) if one != other), -1)
    return f"{sum(more.values())} texts that nobody said, {sum(fewer.values())} missing; they differ at {place}"
