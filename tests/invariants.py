"""The invariants of semantics 1, checked from the rows and from answers, without the code under test."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.conversations.models import Conversation, Message
from compaction_service.engine import formats, jsontext
from compaction_service.tokens.messages import Counter
from tenants.scope import tenant_scope
from tests.unit.engine.context_rules import openai_violations


def context_problems(context: Any, counter: Counter, *, reserve: int, system: Any, factor: float = 1.0) -> list[str]:
    """What is wrong with a context of an exactly counted OpenAI conversation."""
    found = openai_violations(context["messages"])
    messages = context["messages"]
    meter = context["meter"]
    roles = [message["role"] for message in messages]
    start = 0
    if system is not None:
        start = 1
        if messages[0]["content"] != system or roles[0] != "system":
            found.append("the system message is not first")
    if [m["content"] for m in messages if m["role"] == "system"].count(system) > 1:
        found.append("the system message is there twice")
    counted = (
        counter.system("openai", system)
        + (counter.tools("openai", context["tools"]) if context["tools"] else 0)
        + sum(counter.message("openai", message) for message in messages[start:])
    )
    if factor == 1.0 and meter["tokens"] != counted:
        found.append(f"the meter says {meter['tokens']}, a recount {counted}: {meter['breakdown']}")
    if not context["fits"] or counted > meter["window"] - reserve:
        found.append(f"{counted} tokens do not fit in {meter['window']} - {reserve}")
    return found


def chain_problems(tenant_id: uuid.UUID, conversation_id: str, *, left_out: Collection[int] = ()) -> list[str]:
    """Invariant 1 and the chain: coverage contiguous and disjoint, everything covered was read, bounds held.

    `left_out`: positions a fork did not copy, since they were erased before.
    """
    with tenant_scope(tenant_id):
        row = Conversation.objects.get(id=conversation_id)
        nodes = list(Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position"))
        rows = Message.objects.filter(conversation_id=row.id)
        erased = set(rows.filter(erased_at__isnull=False).values_list("position", flat=True))
        erased |= set(left_out)
        found = []
        end = 0
        for node in nodes:
            if not set(range(end + 1, node.from_position)) <= erased or node.from_position <= end:
                found.append(f"the node over {node.from_position}..{node.to_position} follows {end}")
            end = node.to_position
        if end != row.covered_to:
            found.append(f"nodes end at {end}, coverage at {row.covered_to}")
        positions = [*rows.values_list("position", flat=True), *left_out]
        if sorted(positions) != list(range(1, row.last_position + 1)):
            found.append("positions have holes")
        read = set(_read(row))
        if unread := set(range(1, row.covered_to + 1)) - read - erased:
            found.append(f"covered but never read: {sorted(unread)[:20]}")
        return found


def _read(row: Conversation) -> Iterable[int]:
    """Positions in the recorded input of passes that succeeded, of compactions that stand."""
    applied = Compaction.objects.filter(conversation_id=row.id, outcome="applied", reverted_at=None)
    for one in Pass.objects.filter(compaction__in=applied, status="succeeded", from_position__isnull=False):
        yield from range(one.from_position or 0, (one.to_position or 0) + 1)
    for copied in applied.filter(passes=None):  # of a fork: its source's passes have read the span
        yield from range(copied.span.first, copied.span.last + 1)


def bound_problems(log: Iterable[Any], counter: Counter, bound: int) -> list[str]:
    """Summaries over their bound."""
    return [
        f"summary of {counter.text(entry['summary'])} tokens, bound {bound}"
        for entry in log
        if entry["summary"] and counter.text(entry["summary"]) > bound
    ]


def audit(
    tenant_id: uuid.UUID, conversation_id: str, counter: Counter, *, left_out: Collection[int] = ()
) -> list[str]:
    """Differences between the running sums of a conversation and a fresh count of what its rows show.

    Turns are counted anew only where nothing was erased: their numbers stay when requests go.
    """
    with tenant_scope(tenant_id):
        row = Conversation.objects.get(id=conversation_id)
        handed_out = list(Message.objects.filter(conversation_id=row.id).order_by("position"))
        nodes = list(Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position"))
    fmt = formats.get(row.format)
    rows = [one for one in handed_out if one.body]  # an erased message is empty, or a stub
    originals = [one for one in rows if one.erased_at is None]
    tail = [one for one in rows if one.position > row.covered_to]
    carried = [one for one in rows if one.position in row.carried]
    expected = {
        "tail_tokens": sum(_shown(fmt, counter, one) for one in tail) + _pending(fmt, counter, tail),
        "carried_tokens": sum(_shown(fmt, counter, one) for one in carried),
        "summary_tokens": sum(counter.message(row.format, fmt.summary_message(node.text, "")) for node in nodes),
        "stored_tokens": sum(counter.message(row.format, json.loads(one.body)) for one in originals),
        "message_count": len(originals),
        "shown_chars": sum(jsontext.chars(_body(fmt, one)) for one in (*carried, *tail))
        + sum(jsontext.chars(fmt.summary_message(node.text, "")) for node in nodes),
        "last_position": len(handed_out) + len(left_out),
    }
    if len(originals) == row.last_position:
        expected["turn_count"] = sum(one.request for one in rows)
    return [
        f"{name} is {getattr(row, name)}, a recount {value}"
        for name, value in expected.items()
        if getattr(row, name) != value
    ]


def _body(fmt: Any, row: Message) -> Any:
    body = json.loads(row.body)
    return fmt.mask(body, row.masked, [answer[1] for answer in row.answers]) if row.masked else body


def _shown(fmt: Any, counter: Counter, row: Message) -> int:
    return counter.message(fmt.name, _body(fmt, row)) + row.extra_tokens


def _pending(fmt: Any, counter: Counter, tail: list[Message]) -> int:
    """Synthetic results of calls that are open though other messages follow."""
    for index in range(len(tail) - 1, -1, -1):
        row = tail[index]
        if row.calls and not row.abandoned:
            after = tail[index + 1 :]
            answered = [answer[0] for one in after for answer in one.answers]
            waiting = [call for call in row.calls if call[0] not in answered]
            if waiting and any(not one.answers for one in after):
                return sum(
                    counter.message(fmt.name, {"role": "tool", "tool_call_id": call[0], "content": _no_result()})
                    for call in waiting
                )
            return 0
    return 0


def _no_result() -> str:
    from compaction_service.engine.formats.base import NO_RESULT

    return NO_RESULT
