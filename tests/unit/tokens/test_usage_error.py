"""Our counts against what providers charged for recorded requests (targets `count_error_openai`, `count_error_other`).

The recordings are in the folder that TRANSCRIPTS names (default: `../shared/data` beside the repository).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from compaction_service.tokens.families import family, tokenizer_for
from compaction_service.tokens.messages import Counter, counter_for

FOLDER = Path(os.environ.get("TRANSCRIPTS") or Path(__file__).parents[3] / ".." / "shared" / "data")
SMALL, TOLERATED = 300, 3  # a prompt under 300 tokens may be off by three

pytestmark = pytest.mark.skipif(
    not any(FOLDER.glob("*.jsonl")), reason="no recorded transcripts: set TRANSCRIPTS to their folder"
)


@dataclass(frozen=True)
class Recorded:
    """A recorded request, and the input tokens the provider charged for it."""

    id: str
    format: str
    counter: Counter
    charged: int
    counted: int

    @property
    def error(self) -> float:
        off = abs(self.counted - self.charged)
        return 0.0 if self.charged < SMALL and off <= TOLERATED else off / self.charged


def recorded_requests() -> Iterator[Recorded]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            conversation = json.loads(line) if line else {}
            charge = _charge(conversation)
            if charge is None or not _told_in_full(conversation):
                continue
            messages, charged = charge
            fmt, tokenizer = conversation["format"], tokenizer_for(conversation["model"])
            counter = counter_for(tokenizer, family(tokenizer).factor)
            raw = counter.system(fmt, conversation["system"]) + counter.tools(fmt, conversation["tools"])
            raw += sum(counter.message(fmt, message) for message in conversation["messages"][:messages])
            yield Recorded(conversation["id"], fmt, counter, charged, ceil(raw * counter.factor))


def _charge(conversation: dict[str, Any]) -> tuple[int, int] | None:
    """How many messages were sent, and the input tokens charged; None where the recording does not say."""
    meta = conversation.get("meta", {})
    if counted := meta.get("counted_input_tokens"):
        return counted["messages"], counted["input_tokens"]
    usage = meta.get("usage") or {}
    if "messages" not in usage:
        return None
    tokens = usage.get("prompt_tokens") or sum(
        usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return usage["messages"], tokens


def _told_in_full(conversation: dict[str, Any]) -> bool:
    """Whether all that was charged is in the recording: no tool, schema or summary of the provider's own, and no
    picture or document at an address."""
    meta, text = conversation["meta"], json.dumps(conversation["messages"])
    return (
        all(tool.get("type") in (None, "function", "custom") for tool in conversation["tools"] or [])
        and '"iterations"' not in json.dumps(meta.get("usage"))
        and "format" not in (meta.get("output_config") or {})
        and "mcp" not in text
        and '"type": "url"' not in text
        and '"url": "http' not in text
        and "search" not in conversation["model"]
    )


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    return list(recorded_requests())


@pytest.mark.parametrize(("method", "target"), [("exact", 0.01), ("estimate", 0.12)])
def test_counter__recorded_requests__median_error_is_within_target(
    recorded: list[Recorded], method: str, target: float
) -> None:
    errors = [one.error for one in recorded if one.counter.method == method]
    assert len(errors) >= 5
    assert median(errors) <= target, sorted((one.error, one.charged, one.counted, one.id) for one in recorded)


def test_counter__recorded_requests_of_openai_models_with_tools__are_within_the_tolerance(
    recorded: list[Recorded],
) -> None:
    small = [one for one in recorded if one.counter.method == "exact" and one.charged < SMALL]
    assert sum(one.error == 0 for one in small) >= len(small) * 0.8, small
