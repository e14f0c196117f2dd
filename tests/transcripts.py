"""Real conversations, where they are: the folder named by TRANSCRIPTS, else `../shared/data` beside the repository."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ.get("TRANSCRIPTS") or Path(__file__).parents[1] / ".." / "shared" / "data")
# Chat messages that other sources' oddities were left out of.
OPENAI = (
    "aider", "crosswoz_zh", "hh_rlhf", "intercode", "locomo", "mtbench101", "openhands", "pydantic_cassettes",
    "real_persona_chat_ja", "swe_agent", "tau_bench", "toolbench", "webdancer", "woz_de_it",
)  # fmt: skip


@dataclass
class Transcript:
    """Conversations of one source, one after another as one conversation."""

    system: Any = None
    tools: Any = None
    messages: list[Any] = field(default_factory=list)


def transcript(name: str, most: int | None = None) -> Transcript:
    """The OpenAI conversations of a source joined to one, of at most `most` messages. Skips where there are none."""
    return _or_skip(name, "openai", most)


def anthropic_transcript(name: str, most: int | None = None) -> Transcript:
    """The same of a source's Anthropic conversations."""
    return _or_skip(name, "anthropic", most)


def _or_skip(name: str, fmt: str, most: int | None) -> Transcript:
    if not (FOLDER / f"{name}.jsonl").exists():
        pytest.skip(f"no transcripts: {name}.jsonl is not in the folder TRANSCRIPTS names")
    return joined(name, fmt, most)


def joined(name: str, fmt: str, most: int | None = None) -> Transcript:
    """The same of one format. Raises FileNotFoundError where there are none."""
    made = Transcript()
    for line in _lines(FOLDER / f"{name}.jsonl"):
        if line["format"] != fmt:
            continue
        if not made.messages:
            made.system, made.tools = line["system"], line["tools"]
        made.messages += line["messages"]
        if most is not None and len(made.messages) >= most:
            break
    made.messages = made.messages[:most]
    return made


def _lines(path: Path) -> Iterator[Any]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def steps(messages: list[Any]) -> Iterator[list[Any]]:
    """Batches as an agent appends them: each ends with an assistant's response or a tool's result, or is a request."""
    batch: list[Any] = []
    for message in messages:
        if batch and message["role"] == "assistant" and batch[-1]["role"] == "tool":
            yield batch
            batch = []
        batch.append(message)
        if message["role"] == "assistant" and not message.get("tool_calls"):
            yield batch
            batch = []
    if batch:
        yield batch
