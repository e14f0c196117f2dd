"""Messages as delimited data for a summariser (semantics 7, Input).

The transcript is other people's text inside our markup:

    <message position="12" role="user" at="2026-01-02T03:04:05Z">
    text
    <call name="read_file">{"path": "a.py"}</call>
    </message>

Anything in it that could be read as our markup, or as a chat template's control token, is disarmed (`engine.markup`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from compaction_service.engine.markup import disarming

from .span import Part, SpanMessage, with_tool_names
from .text import clean

TAGS = (
    "transcript",
    "message",
    "call",
    "result",
    "media",
    "refusal",
    "previous_summary",
    "summaries",
    "summary",
    "tail",
    "focus",
    "preserve",
    "notes",
)
_disarm = disarming(TAGS)
_DATA_URL = re.compile(r"data:([\w.+-]{1,64}/[\w.+-]{1,64})?(?:;[\w=.+-]{1,64}){0,8};base64,[A-Za-z0-9+/=_%-]{64,}")
_ATTRIBUTE = re.compile(r"[^\w.:/@ +-]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a message, escaped: `body` may be cut anywhere, `open` and `close` belong to every piece of it."""

    open: str
    body: str
    close: str

    def __str__(self) -> str:
        return f"{self.open}{self.body}{self.close}"


def escape(text: str) -> str:
    """The text with nothing left in it that opens or closes our markup; base64 of data URLs is named, not kept."""
    return _disarm(_DATA_URL.sub(_name_data, clean(text)))


def _name_data(found: re.Match[str]) -> str:
    return f"[{found[1] or 'data'}, {len(found[0])} characters of base64]"


def attribute(value: str) -> str:
    """A value for a tag's attribute: one short line without quotes or brackets."""
    return _ATTRIBUTE.sub("_", clean(value[:80]))


def timestamp(at: datetime) -> str:
    """RFC 3339 in UTC, whole seconds. A naive time is taken as UTC."""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def with_times_once(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """The messages with a time only where its minute is another than that of the message before: a time takes as many
    tokens as a short message."""
    out, before = [], None
    for message in messages:
        minute = message.at and timestamp(message.at)[:16]
        out.append(replace(message, at=None) if minute and minute == before else message)
        before = minute
    return out


def segments(message: SpanMessage) -> list[Segment]:
    """The message's parts as markup, in order. Thinking is left out; a message without anything else says so."""
    out = [segment for part in message.parts if (segment := _segment(part))]
    return out or [Segment("", "(no text)", "")]


def _segment(part: Part) -> Segment | None:
    if part.kind == "thinking":
        return None
    if part.kind == "text":
        return Segment("", escape(part.text), "") if part.text.strip() else None
    body = part.text[:200] if part.kind == "media" else part.text
    kind = part.kind if part.kind in TAGS else "media"
    name = f' name="{attribute(part.name)}"' if part.name else ""
    return Segment(f"<{kind}{name}>", escape(body), f"</{kind}>")


def wrap(message: SpanMessage, body: str, piece: int | None = None) -> str:
    """One message's markup around its rendered parts; `piece` counts those of a message cut."""
    at = f' at="{timestamp(message.at)}"' if message.at else ""
    number = f' piece="{piece}"' if piece else ""
    return f'<message position="{message.position}" role="{attribute(message.role)}"{at}{number}>\n{body}\n</message>'


def render_message(message: SpanMessage) -> str:
    return wrap(message, "\n".join(map(str, segments(message))))


def render(messages: Sequence[SpanMessage]) -> str:
    """All messages, oldest first, one line break between them."""
    return "\n".join(map(render_message, with_times_once(with_tool_names(messages))))
