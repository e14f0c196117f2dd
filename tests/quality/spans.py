"""Spans as the summariser is given them, made of provider messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from compaction_service.engine.exchanges import group
from compaction_service.engine.formats import anthropic, openai
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.engine.types import Entry
from compaction_service.tokens.count import count_text

ENCODING = "o200k_base"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message."""

    kind: str
    text: str
    name: str | None = None
    id: str | None = None


def count(text: str) -> int:
    return count_text(text, ENCODING)


def conversations(path: Path) -> Iterator[tuple[SpanMessage, ...]]:
    """Each conversation of a file of transcripts as one span."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            one = json.loads(line)
            yield span(one["format"], one["messages"])


def span(form: str, messages: Sequence[Any], at: datetime | None = None) -> tuple[SpanMessage, ...]:
    fmt = anthropic if form == "anthropic" else openai
    entries = [
        Entry(position, fmt.read(message, "messages"), body=message) for position, message in enumerate(messages, 1)
    ]
    numbers = [number for number, one in enumerate(group(entries)) for _ in range(one.start, one.end)]
    return tuple(
        SpanMessage(one.position, one.facts.role, at, fmt.parts(one.body), exchange=number, request=one.facts.request)
        for one, number in zip(entries, numbers, strict=True)
    )


def texts(messages: Sequence[SpanMessage]) -> list[str]:
    """What is said, called and answered; calls are their arguments as JSON."""
    return [part.text for message in messages for part in message.parts if part.kind in ("text", "call", "result")]
