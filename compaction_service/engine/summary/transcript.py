"""Messages as delimited data for a summariser (semantics 7, Input).

The transcript is other people's text inside our markup:

    <time 2026-01-02T03:04Z>
    <12 user> Look at a.py.
    <13 assistant> <call name="read_file">{"path": "a.py"}</call>

A mark says position and role of the message that begins there, which ends where the next begins; a time holds until the
next is told. Every message of a conversation pays for its mark once, so marks are short.

Anything in it that could be read as our markup, or as a chat template's control token, is disarmed (`engine.markup`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from compaction_service.engine.markup import disarming

from .span import Part, SpanMessage, with_tool_names
from .text import clean

TAGS = (
    "transcript",
    "message",
    "time",
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
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_MARK = rf"\d{{1,19}}\s{{1,9}}(?:{'|'.join(ROLES)})"
MARKS = re.compile(f"<{_MARK}[^<>]{{0,20}}>")  # as `wrap` writes them
_disarm = disarming((*TAGS, _MARK))
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


def time_mark(at: datetime | None) -> str:
    """The minute in UTC, as a line before a message; empty for none. A naive time is taken as UTC."""
    if at is None:
        return ""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.strftime("<time %Y-%m-%dT%H:%MZ>")


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
    """One message's mark before its rendered parts; `piece` counts those of a message cut."""
    number = f" piece {piece}" if piece else ""
    return f"<{message.position} {attribute(message.role)}{number}> {body}"


def render_message(message: SpanMessage) -> str:
    return wrap(message, "\n".join(map(str, segments(message))))


def render(messages: Sequence[SpanMessage]) -> str:
    """All messages, oldest first, one line break between them."""
    return "\n".join(lines((time_mark(message.at), render_message(message)) for message in with_tool_names(messages)))


def lines(shown: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Times and messages, a time where it is another than the one told before."""
    told = ""
    for time, text in shown:
        if time and time != told:
            told = time
            yield time
        yield text
