"""The conversations that presets are replayed on: those that come with the service, and those of a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests import transcripts
from tests.transcripts import Transcript

SHIPPED = Path(__file__).parents[2] / "data"


def given(name: str, most: int | None) -> Transcript:
    """A transcript of at most `most` messages. Skips where the folder of real ones does not have it."""
    path = SHIPPED / f"{name}.jsonl"
    if not path.exists():
        return transcripts.transcript(name, most)
    line = json.loads(path.read_text(encoding="utf-8").split("\n")[0])
    return Transcript(line["system"], line["tools"], line["messages"][:most])
