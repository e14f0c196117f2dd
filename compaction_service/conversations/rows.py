"""Between rows and the engine's nouns: a stored message as an `Entry`, a provider message as a row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from compaction_service.conversations.models import Conversation, Message
from compaction_service.engine import jsontext
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import JSON, Answer, Call, Entry, Facts
from compaction_service.tokens.messages import Counter

# What planning needs of a message; the body stays in the database.
PLANNING_FIELDS = (
    "position", "role", "calls", "answers", "request", "tokens", "chars", "extra_tokens", "masked", "pinned",
    "abandoned", "thinking_tokens", "thinking_chars",
)  # fmt: skip
ENTRY_FIELDS = (*PLANNING_FIELDS, "body")


@dataclass(frozen=True)
class Details:
    """What a client may say beside a message."""

    pinned: bool = False
    external_id: str | None = None
    occurred_at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """A message read and counted, before it has a position."""

    facts: Facts
    message: JSON
    text: str
    tokens: int
    chars: int
    digest: bytes
    thinking_tokens: int = 0  # saved by leaving its thinking out
    thinking_chars: int = 0


def draft(fmt: Format, counter: Counter, message: JSON, attr: str) -> Draft:
    """Read and count one provider message. Raises `MessageError`."""
    facts = fmt.read(message, attr)
    text = jsontext.dumps(message)
    tokens, chars = counter.message(fmt.name, message), jsontext.chars(message)
    bare = fmt.without_thinking(message)
    return Draft(
        facts=facts,
        message=message,
        text=text,
        tokens=tokens,
        chars=chars,
        digest=hashlib.sha256(text.encode()).digest()[:16],
        thinking_tokens=thinking_tokens(fmt, counter, message, tokens),
        thinking_chars=0 if bare is message else chars - jsontext.chars(bare),
    )


def thinking_tokens(fmt: Format, counter: Counter, message: JSON, tokens: int) -> int:
    """What leaving the thinking out saves of a message's tokens."""
    bare = fmt.without_thinking(message)
    return 0 if bare is message else max(0, tokens - counter.message(fmt.name, bare))


def with_opening(fmt: Format, counter: Counter, made: Draft) -> Draft:
    """A conversation's first message, counted with what its context must show before it."""
    opening = fmt.opening(made.message)
    return made if opening is None else replace(made, tokens=made.tokens + counter.message(fmt.name, opening))


def with_savings(fmt: Format, counter: Counter, made: Draft, facts: Facts) -> Facts:
    """The admitted facts, each answer with what showing its placeholder would save (semantics 6)."""
    if not facts.answers:
        return facts
    return replace(facts, answers=tuple(_savings(fmt, counter, made, facts)))


def _savings(fmt: Format, counter: Counter, made: Draft, facts: Facts) -> Iterable[Answer]:
    names = [answer.name for answer in facts.answers]
    for index, answer in enumerate(facts.answers):
        masked = fmt.mask(made.message, (index,), names)
        yield replace(
            answer,
            saving=max(0, made.tokens - counter.message(fmt.name, masked)),
            saving_chars=max(0, made.chars - jsontext.chars(masked)),
        )


def entry_from(
    position: int,
    role: str,
    calls: list[Any],
    answers: list[Any],
    request: bool,
    tokens: int,
    chars: int,
    extra_tokens: int,
    masked: list[int],
    pinned: bool,
    abandoned: bool,
    thinking_tokens: int,
    thinking_chars: int,
    body: str | None = None,
) -> Entry:
    """An `Entry` from the values of `ENTRY_FIELDS` or `PLANNING_FIELDS`, in their order."""
    return Entry(
        position=position,
        facts=Facts(
            role=role,
            calls=tuple(Call(*call) for call in calls),
            answers=tuple(Answer(*answer) for answer in answers),
            request=request,
        ),
        tokens=tokens,
        chars=chars,
        extra_tokens=extra_tokens,
        masked=tuple(masked),
        pinned=pinned,
        abandoned=abandoned,
        thinking_tokens=thinking_tokens,
        thinking_chars=thinking_chars,
        body=None if body is None else jsontext.loads(body),
    )


def entry_of(row: dict[str, Any]) -> Entry:
    """An `Entry` from `Message.objects.values(...)` of at least `PLANNING_FIELDS`."""
    values: dict[str, Any] = {name: row.get(name) for name in ENTRY_FIELDS}
    return entry_from(**values)


def answers_of(facts: Facts) -> list[list[Any]]:
    """The answers of a message as its row has them."""
    return [[a.id, a.name, a.chars, a.saving, a.saving_chars] for a in facts.answers]


def entry_of_row(row: Message) -> Entry:
    """The `Entry` of a row in memory, without its body."""
    return entry_of({name: getattr(row, name) for name in PLANNING_FIELDS})


def message_of(*, conversation: Conversation, facts: Facts, made: Draft, details: Details, now: datetime) -> Message:
    """The row of an admitted message at the conversation's last position."""
    return Message(
        conversation_id=conversation.id,
        tenant_id=conversation.tenant_id,
        position=conversation.last_position,
        role=facts.role,
        body=made.text,
        calls=[[call.id, call.name] for call in facts.calls],
        answers=answers_of(facts),
        request=facts.request,
        turn=conversation.turn_count,
        tokens=made.tokens,
        chars=made.chars,
        thinking_tokens=made.thinking_tokens,
        thinking_chars=made.thinking_chars,
        digest=made.digest,
        pinned=details.pinned,
        external_id=details.external_id,
        occurred_at=details.occurred_at,
        metadata=details.metadata,
        created_at=now,
    )
