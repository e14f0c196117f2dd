"""Real conversations, where they are: the folder named by TRANSCRIPTS, else `../shared/data` beside the repository.
Where neither is, the two that come with the service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("TRANSCRIPTS") or Path(__file__).parents[1] / ".." / "shared" / "data")
SHIPPED = Path(__file__).parent / "data"
ODD = "odd"  # the file of what a client may send but should not
FORMATS = ("openai", "anthropic")

JSON = Any


@dataclass
class Transcript:
    """One conversation, or those of one source and format, one after another as one conversation."""

    system: Any = None
    tools: Any = None
    messages: list[Any] = field(default_factory=list)
    id: str = ""
    format: str = "openai"


def sources() -> list[str]:
    """The names of all files there are but the odd one, in order."""
    return [path.stem for path in sorted(FOLDER.glob("*.jsonl")) if path.stem != ODD] or ["airline", "coding"]


def formats_of(name: str) -> list[str]:
    """The formats of a source's conversations."""
    return [fmt for fmt in FORMATS if any(one.format == fmt for one in conversations(name))]


@lru_cache(maxsize=4)
def conversations(name: str) -> tuple[Transcript, ...]:
    """Every conversation of a source, as recorded. Skips where the source is not there."""
    path = next((at for at in (FOLDER / f"{name}.jsonl", SHIPPED / f"{name}.jsonl") if at.exists()), None)
    if path is None:
        pytest.skip(f"no transcripts: {name}.jsonl is not in the folder TRANSCRIPTS names")
    return tuple(
        Transcript(line["system"], line["tools"], line["messages"], line["id"], line["format"]) for line in _lines(path)
    )


def transcript(name: str, most: int | None = None, fmt: str = "openai") -> Transcript:
    """The conversations of a source in this format joined to one, of at most `most` messages.

    System and tools are those of the first. Skips where the source is not there.
    """
    joined = Transcript(id=name, format=fmt)
    for one in conversations(name):
        if one.format != fmt:
            continue
        if not joined.messages:
            joined.system, joined.tools = one.system, one.tools
        joined.messages += one.messages
        if most is not None and len(joined.messages) >= most:
            break
    joined.messages = joined.messages[:most]
    return joined


def anthropic_transcript(name: str, most: int | None = None) -> Transcript:
    """The same of a source's Anthropic conversations."""
    return transcript(name, most, "anthropic")


def _lines(path: Path) -> Iterator[Any]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def steps(messages: Sequence[JSON]) -> Iterator[list[JSON]]:
    """Batches as an agent appends them: requests, or a response with the results of its calls."""
    batch: list[JSON] = []
    for message in messages:
        assistant = message["role"] == "assistant"
        if assistant and batch and batch[-1]["role"] != "assistant":
            yield batch
            batch = []
        batch.append(message)
        if assistant and not calls(message):
            yield batch
            batch = []
    if batch:
        yield batch


def batches(messages: Sequence[JSON], least: int) -> Iterator[list[JSON]]:
    """Steps, short ones together: each but the last has about `least` tokens."""
    batch: list[JSON] = []
    size = 0
    for step in steps(messages):
        batch += step
        size += len(json.dumps(step)) // 4
        if size >= least:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def calls(message: JSON) -> bool:
    """The message makes a call of the agent's tools."""
    return bool(message.get("tool_calls")) or any(block["type"] == "tool_use" for block in blocks(message))


def asks(fmt: str, message: JSON) -> bool:
    """It is a user request: the user says something besides results. Blank words are none to Anthropic's API."""
    if message["role"] != "user" or fmt == "openai":
        return bool(message["role"] == "user")
    return any(
        block["type"] != "tool_result" and (block["type"] != "text" or block["text"].strip())
        for block in blocks(message)
    )


def blocks(message: JSON) -> list[JSON]:
    """The content as a list, whatever form it has."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []
