"""The invariants of semantics 1, checked from the rows and from answers, without the code under test."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.conversations.models import Conversation, Message
from compaction_service.engine import formats, jsontext
from compaction_service.engine.formats.base import NO_RESULT, Format
from compaction_service.engine.types import Call
from compaction_service.tokens.messages import Counter
from tenants.scope import tenant_scope
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.context_rules_anthropic import anthropic_violations


def context_problems(
    context: Any,
    counter: Counter,
    *,
    reserve: int,
    system: Any,
    format: str = "openai",  # noqa: A002
) -> list[str]:
    """What is wrong with a context that is counted by the model's own factor."""
    messages, meter = context["messages"], context["meter"]
    if format == "openai":
        found = openai_violations(messages)
        opening = system if isinstance(system, dict) else {"role": "system", "content": system}
        if system is not None and (messages[0] != opening or messages.count(opening) > 1):
            found.append("the system message is not there once, first")
        messages = messages[0 if system is None else 1 :]
    else:
        found = anthropic_violations(messages, context["system"])
        if context["system"] != system:
            found.append("another system")
    parts = [
        counter.system(format, system),
        counter.tools(format, context["tools"]) if context["tools"] else 0,
        sum(counter.message(format, message) for message in messages),
    ]
    counted = sum(parts) * counter.factor
    # Anthropic turns are merged, so that they cost less than their messages; parts are rounded up each.
    if meter["tokens"] < counted or (counter.method == "exact" and format == "openai" and meter["tokens"] != counted):
        found.append(f"the meter says {meter['tokens']}, a recount {counted}: {meter['breakdown']}")
    if not context["fits"] or meter["tokens"] > meter["window"] - reserve:
        found.append(f"{meter['tokens']} tokens do not fit in {meter['window']} - {reserve}")
    return found


def chain_problems(tenant_id: uuid.UUID, conversation_id: str, *, forked: bool = False) -> list[str]:
    """Invariant 1 and the chain: coverage contiguous and disjoint, everything covered was read.

    `forked`: erased messages were not copied, nor the passes that read the others.
    """
    with tenant_scope(tenant_id):
        row = Conversation.objects.get(id=conversation_id)
        nodes = list(Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position"))
        found: list[str] = []
        rows = Message.objects.filter(conversation_id=row.id)
        positions = list(rows.order_by("position").values_list("position", flat=True))
        standing = set(rows.exclude(body="").values_list("position", flat=True))
        covered = [p for node in nodes for p in range(node.from_position, node.to_position + 1)]
        if len(set(covered)) < len(covered):
            found.append("nodes overlap")
        if lost := {p for p in standing if p <= row.covered_to} - set(covered):
            found.append(f"covered by no node: {sorted(lost)[:20]}")
        if nodes and nodes[-1].to_position != row.covered_to:
            found.append(f"nodes end at {nodes[-1].to_position}, coverage at {row.covered_to}")
        if row.covered_to and not nodes:
            found.append(f"coverage to {row.covered_to} without a node")
        if not forked and positions != list(range(1, row.last_position + 1)):
            found.append("positions have holes")
        read = set(_read(row))
        if not forked and (unread := {p for p in standing if p <= row.covered_to} - read):
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


def audit(tenant_id: uuid.UUID, conversation_id: str, counter: Counter, prefix: str = "") -> list[str]:
    """Differences between the running sums of a conversation and a fresh count of what its rows show.

    `prefix`: what the policy has summaries begin with.
    """
    with tenant_scope(tenant_id):
        row = Conversation.objects.get(id=conversation_id)
        rows = list(Message.objects.filter(conversation_id=row.id).order_by("position"))
        nodes = list(Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position"))
    fmt = formats.get(row.format)
    standing = [one for one in rows if one.body]
    originals = [one for one in standing if one.erased_at is None]
    tail = [one for one in standing if one.position > row.covered_to]
    carried = [one for one in standing if one.position in row.carried]
    shown = _Shown(fmt, counter, row.thinking_to, standing[0].position if standing else 0)
    expected = {
        "tail_tokens": sum(map(shown.tokens, tail)) + _pending(fmt, counter, tail),
        "carried_tokens": sum(map(shown.tokens, carried)),
        "summary_tokens": sum(counter.message(row.format, fmt.summary_message(node.text, prefix)) for node in nodes),
        "stored_tokens": sum(
            counter.message(row.format, json.loads(one.body)) + shown.opening(one) for one in originals
        ),
        "message_count": len(originals),
        "shown_chars": sum(jsontext.chars(shown.body(one)) for one in (*carried, *tail))
        + sum(jsontext.chars(fmt.summary_message(node.text, prefix)) for node in nodes),
    }
    if len(originals) == row.last_position:
        expected["turn_count"] = sum(one.request for one in rows)
    return [
        f"{name} is {getattr(row, name)}, a recount {value}"
        for name, value in expected.items()
        if getattr(row, name) != value
    ]


@dataclass(frozen=True)
class _Shown:
    """Stored messages as a context shows them, each by itself."""

    fmt: Format
    counter: Counter
    thinking_to: int
    first: int

    def body(self, row: Message) -> Any:
        body = json.loads(row.body)
        if row.position <= self.thinking_to and isinstance(body["content"], list):
            body["content"] = [one for one in body["content"] if one["type"] not in ("thinking", "redacted_thinking")]
        return self.fmt.mask(body, row.masked, [answer[1] for answer in row.answers]) if row.masked else body

    def opening(self, row: Message) -> int:
        """The first message is counted with what stands before it."""
        opening = self.fmt.opening(json.loads(row.body)) if row.position == self.first else None
        return 0 if opening is None else self.counter.message(self.fmt.name, opening)

    def tokens(self, row: Message) -> int:
        return self.counter.message(self.fmt.name, self.body(row)) + row.extra_tokens + self.opening(row)


def _pending(fmt: Format, counter: Counter, tail: list[Message]) -> int:
    """Synthetic results of calls that are open though something that is no result of theirs follows."""
    for index in range(len(tail) - 1, -1, -1):
        row = tail[index]
        if row.calls and not row.abandoned:
            after = tail[index + 1 :]
            answered = [answer[0] for one in after for answer in one.answers]
            waiting = [call for call in row.calls if call[0] not in answered]
            if waiting and any(not one.answers or one.request for one in after):
                return sum(counter.message(fmt.name, fmt.synthetic_result(Call(*call), NO_RESULT)) for call in waiting)
            return 0
    return 0
