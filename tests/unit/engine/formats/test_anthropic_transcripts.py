"""Real Anthropic transcripts, brought in and compacted."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compaction_service.engine.admit import Admission, Ledger, admit
from compaction_service.engine.formats import anthropic
from compaction_service.engine.formats.base import NO_RESULT
from compaction_service.engine.planning import plan
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.types import Call, Entry, MessageError, Summary
from compaction_service.tokens.families import tokenizer_for
from compaction_service.tokens.messages import counter_for
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies_anthropic import stored

Message = dict[str, Any]


def transcripts() -> Iterator[dict[str, Any]]:
    folder = Path(os.environ.get("TRANSCRIPTS", Path(__file__).parents[5] / "shared" / "data"))
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        pytest.skip("no transcripts: set TRANSCRIPTS to a folder of *.jsonl conversations")
    for file in files:
        for line in file.read_text(encoding="utf-8").split("\n"):
            if '"format": "anthropic"' in line:
                yield json.loads(line)


def brought_in(messages: list[Message]) -> Admission | MessageError:
    try:
        return admit(Ledger(), [anthropic.read(message, f"messages.{i}") for i, message in enumerate(messages)])
    except MessageError as error:
        return error


def test_transcripts__read_and_admitted__all_but_odd_ones_are_accepted() -> None:
    for conversation in transcripts():
        admitted = brought_in(conversation["messages"])
        if isinstance(admitted, MessageError):
            assert "oddity" in conversation, f"{conversation['id']}: {admitted.attr}: {admitted}"
            assert admitted.attr.startswith("messages.")
            continue
        anthropic.check_system(conversation["system"], "system")
        anthropic.check_tools(conversation["tools"], "tools")
        assert all(answer.name for facts in admitted.facts for answer in facts.answers)
        if "oddity" not in conversation:
            assert admitted.abandoned == {}


def test_transcripts__random_plans__give_contexts_that_are_valid_and_cost_at_most_their_sum() -> None:
    rng = random.Random(7)  # noqa: S311 - a seed
    counter = counter_for(tokenizer_for("claude-sonnet-4-5"), 1.1)

    def tokens(message: Message) -> int:
        return counter.message("anthropic", message)

    for conversation in transcripts():
        if isinstance(brought_in(conversation["messages"]), MessageError):
            continue
        entries = stored(conversation["messages"], tokens)
        for _ in range(2):
            cut = rng.randrange(1, len(entries) + 1)
            parts = _compacted(conversation["system"], entries[:cut], rng, tokens)
            rendered = render(anthropic, parts)
            assert anthropic_violations(rendered.messages, rendered.system) == [], conversation["id"]
            known = {id(block) for entry in entries for block in _thoughts(entry.body)}
            assert all(id(block) in known for message in rendered.messages for block in _thoughts(message))
            made_up = tokens(anthropic.synthetic_result(Call("x", "x"), NO_RESULT))
            counted = part_tokens(parts, system_tokens=0, tools_tokens=0, synthetic_tokens=made_up)
            assert sum(map(tokens, rendered.messages)) <= sum(counted.values()), conversation["id"]


def _thoughts(message: Message) -> list[Any]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block for block in content if "thinking" in block["type"]]


def _compacted(system_: Any, entries: tuple[Entry, ...], rng: random.Random, tokens: Any) -> Parts:
    made = plan(
        entries,
        preserve_recent_turns=rng.choice([0, 1, 5]),
        keep_last_user_request=rng.random() < 0.5,
        keep_first_user_request=rng.random() < 0.5,
        target=rng.choice([0, 0.5]),
        limit=8000,
        fixed_tokens=0,
        kept_summaries_tokens=0,
        ratio=8,
        bound=1000,
    )
    covered = made.to_position or 0
    nodes: tuple[Summary, ...] = ()
    if covered:
        cost = tokens(anthropic.summary_message("What was done."))
        nodes = (Summary("s", "What was done.", cost, 1, covered),)
    shown = tuple(
        replace(entry, masked=entry.mask_all().masked) if rng.random() < 0.3 else entry
        for entry in entries
        if entry.position > covered or entry.position in made.carried
    )
    carried = tuple(entry for entry in shown if entry.position <= covered)
    return Parts(system_, None, nodes, carried, shown[len(carried) :])
