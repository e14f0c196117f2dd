"""What is summarised: stored messages reduced to what a summary may draw on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

Count = Callable[[str], int]  # tokens of a text, by the counter the bound is measured with


class Part(Protocol):
    """A piece of a message. `kind` is text, call, result, media, thinking or refusal.

    `text` holds a call's arguments (JSON), a result's text, or a description of a media part, never its bytes;
    `name` is the tool or file.
    """

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class SpanMessage:
    """A covered message. `tokens` is its raw count; `request`: it is a user request (semantics 1)."""

    position: int
    role: str
    at: datetime | None
    parts: tuple[Part, ...]
    exchange: int = 0  # index of its exchange; messages of one exchange stay together where they fit
    tokens: int = 0
    request: bool = False

    def texts(self, *kinds: str) -> Iterator[str]:
        return (part.text for part in self.parts if part.kind in kinds)

    @property
    def response(self) -> bool:
        """A completed response: an assistant message without tool calls (semantics 1)."""
        return self.role == "assistant" and not any(part.kind == "call" for part in self.parts)


def exchanges(messages: Sequence[SpanMessage]) -> Iterator[list[SpanMessage]]:
    """Neighbouring messages of the same exchange, together."""
    group: list[SpanMessage] = []
    for message in messages:
        if group and message.exchange != group[-1].exchange:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class _NamedPart:
    kind: str
    text: str
    name: str | None
    id: str | None


def with_tool_names(messages: Sequence[SpanMessage]) -> list[SpanMessage]:
    """The messages with each result named after the tool of the nearest earlier call of its id (OpenAI results do not
    say it themselves)."""
    names: dict[str, str] = {}
    out = []
    for message in messages:
        for part in message.parts:
            if part.kind == "call" and part.id and part.name:
                names[part.id] = part.name
        if any(map(_nameless, message.parts)):
            parts = [
                _NamedPart(p.kind, p.text, names.get(p.id or ""), p.id) if _nameless(p) else p for p in message.parts
            ]
            out.append(replace(message, parts=tuple(parts)))
        else:
            out.append(message)
    return out


def _nameless(part: Part) -> bool:
    return part.kind == "result" and not part.name
