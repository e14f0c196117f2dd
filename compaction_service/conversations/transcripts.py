"""Messages as a person reads them: for the admin's pages. What customers wrote is hostile, and of any length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from compaction_service.conversations.models import Conversation, Message
from compaction_service.engine import formats, jsontext
from compaction_service.engine.formats.base import Format, Part
from compaction_service.engine.types import JSON

PAGE = 50  # messages of one page
PART_CHARS = 6_000  # of one part, where its message is one of many
PAGE_CHARS = 400_000  # of all bodies read for a page: what is beyond is named, and has a page of its own
OPEN_CHARS = 600  # a longer part is folded

# Controls are shown, not obeyed; bidirectional overrides would let a text pretend to be another.
_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
_VISIBLE = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x0D: None,
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(_BIDI, "\ufffd"),
}


@dataclass(frozen=True)
class Piece:
    """A part of a message. `more`: characters that are not shown."""

    kind: str
    text: str
    name: str = ""
    more: int = 0

    @property
    def folded(self) -> bool:
        return len(self.text) > OPEN_CHARS or self.text.count("\n") > 12

    @property
    def start(self) -> str:
        """The first line, for the fold."""
        return self.text[:120].strip().partition("\n")[0]


@dataclass(frozen=True)
class Line:
    """A message as a page shows it. `unread`: its body was too long for this page."""

    role: str
    position: int | None = None
    pieces: Sequence[Piece] = ()
    at: datetime | None = None
    tokens: int | None = None
    chars: int = 0
    unread: bool = False
    flags: Sequence[str] = ()


@dataclass(frozen=True)
class Transcript:
    """One page of a conversation's messages, and where the others begin."""

    conversation_id: UUID
    lines: list[Line] = field(default_factory=list)
    first: int = 1
    last: int = 0
    earlier: int | None = None  # the position the page before begins with
    later: int | None = None


def visible(text: str) -> str:
    """The text with what cannot be seen or encoded made visible: controls, lone surrogates, direction overrides."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.translate(_VISIBLE)


def page(
    conversation: Conversation, first: int, last: int, *, start: int | None = None, carried: Iterable[int] = ()
) -> Transcript:
    """Messages from `start` on (`first` without it), of positions first..last. Runs inside the tenant's scope.

    Two queries: sizes and flags, then the bodies that are short enough to read here.
    """
    start = min(max(start or first, first), max(first, last))
    of_span = Message.objects.filter(conversation_id=conversation.id, position__gte=start, position__lte=last)
    rows = list(of_span.order_by("position").defer("body", "calls", "metadata", "digest")[:PAGE])
    left, wanted = PAGE_CHARS, []
    for row in rows:
        if row.chars <= left:
            left -= row.chars
            wanted.append(row.position)
    bodies = dict(of_span.filter(position__in=wanted).values_list("position", "body")) if wanted else {}
    fmt, kept = formats.get(conversation.format), frozenset(carried)
    lines = [_line(fmt, row, bodies.get(row.position), row.position in kept) for row in rows]
    end = rows[-1].position if rows else start
    return Transcript(
        conversation_id=conversation.id,
        lines=lines,
        first=first,
        last=last,
        earlier=max(first, start - PAGE) if start > first else None,
        later=end + 1 if len(rows) == PAGE and end < last else None,
    )


def whole(conversation: Conversation, row: Message) -> Line:
    """One message with all of its text."""
    return _line(formats.get(conversation.format), row, row.body, carried=False, most=None)


def given(fmt: Format, message: JSON, names: Mapping[str, str], *, position: int | None = None) -> Line:
    """A provider message that is not a stored one, such as one of a context. `names`: tools by call id."""
    role = message.get("role") if isinstance(message, dict) else None
    return Line(
        role=visible(str(role or "")), position=position, pieces=pieces(fmt.parts(message), names, most=PART_CHARS)
    )


def pieces(parts: Iterable[Part], names: Mapping[str, str], *, most: int | None) -> list[Piece]:
    """Parts made visible, results named after the tool of their call, none longer than `most` characters."""
    return [
        Piece(
            kind=part.kind,
            text=visible(part.text if most is None else part.text[:most]),
            name=visible(part.name or names.get(part.id or "") or ""),
            more=0 if most is None else max(0, len(part.text) - most),
        )
        for part in parts
    ]


def text_of(value: JSON) -> str:
    """What a system prompt or a list of tools says: the text itself, or indented JSON, made visible and cut."""
    text = value if isinstance(value, str) else jsontext.dumps(value)
    return visible(text[:PART_CHARS]) + (f"\n[{len(text) - PART_CHARS:,} more]" if len(text) > PART_CHARS else "")


def _line(fmt: Format, row: Message, body: str | None, carried: bool, most: int | None = PART_CHARS) -> Line:
    names: dict[str, str] = {answer[0]: answer[1] or "" for answer in row.answers}
    parts: list[Any] = [] if body is None or row.erased_at else list(fmt.parts(jsontext.loads(body)))
    states = {
        "carried": carried,
        "pinned": row.pinned,
        "abandoned": row.abandoned,
        "masked": bool(row.masked),
        "erased": row.erased_at is not None,
    }
    return Line(
        role=visible(row.role),
        position=row.position,
        pieces=pieces(parts, names, most=most),
        at=row.occurred_at or row.created_at,
        tokens=row.tokens,
        chars=row.chars,
        unread=body is None and row.erased_at is None,
        flags=[name for name, is_so in states.items() if is_so],
    )
