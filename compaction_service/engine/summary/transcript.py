"""Messages as delimited data for a summariser (semantics 7, Input).

The transcript is other people's text inside our markup:

    <message position="12" role="user" at="2026-01-02T03:04:05Z">
    text
    <call name="read_file">{"path": "a.py"}</call>
    </message>

Anything in it that could be read as our markup, or as a chat template's control token, loses its opening bracket to
`&lt;`. Everything else stays as it is, so that code, shell commands and paths can be quoted verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
# Not ours, but read as roles or turns by many models, and by servers that expand chat templates.
_ROLES = (
    "system",
    "developer",
    "assistant",
    "user",
    "tool",
    "human",
    "instructions",
    "start_of_turn",
    "end_of_turn",
    "s",
)

# Full-width letters and look-alike brackets are folded before the search: a model reads them as the plain ones.
_ANGLES = (0x02C2, 0x27E8, 0x3008, 0xFE64)
_FOLD = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | dict.fromkeys(_ANGLES, "<")
_FOLDED = re.compile("[\uff01-\uff5e\u02c2\u27e8\u3008\ufe64]")
_HIDDEN = r"[\s/\\\u00ad\u200b-\u200f\u2060-\u2064\ufeff]{0,16}"
_MARKUP = re.compile(rf"<(?={_HIDDEN}(?:(?i:{'|'.join(TAGS)})(?!\w)|(?:{'|'.join(_ROLES)})\s*>)|\|)")
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
    text = _DATA_URL.sub(_name_data, clean(text))
    shadow = text.translate(_FOLD) if _FOLDED.search(text) else text
    if "<" not in shadow:
        return text
    out = []
    start = 0
    for found in _MARKUP.finditer(shadow):
        out += [text[start : found.start()], "&lt;"]
        start = found.end()
    return "".join([*out, text[start:]])


def _name_data(found: re.Match[str]) -> str:
    return f"[{found[1] or 'data'}, {len(found[0])} characters of base64]"


def attribute(value: str) -> str:
    """A value for a tag's attribute: one short line without quotes or brackets."""
    return _ATTRIBUTE.sub("_", clean(value[:80]))


def timestamp(at: datetime) -> str:
    """RFC 3339 in UTC, whole seconds. A naive time is taken as UTC."""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


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
    return "\n".join(map(render_message, with_tool_names(messages)))
