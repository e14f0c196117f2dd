"""One message far larger than the summariser's window (semantics 7, Input)."""

from __future__ import annotations

import re

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit, chain_problems
from tests.model_server import Control

COUNTER = counter_for("o200k_base", 1.0)
BOUND = 1000


@pytest.mark.parametrize(
    ("tokens", "most"), [(60_000, 4), pytest.param(400_000, 24, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_fold__one_message_of_many_windows__is_read_whole_once_in_pieces(
    service: Service, models: Control, model: str, tokens: int, most: int
) -> None:
    """The summariser's window is 32,000, as of any model that nobody knows."""
    service.summarizer(models, model)
    path = service.create(
        context_window=1_000_000, policy={"summary_max_tokens": BOUND, "target_compression_ratio": 800, "target": 0}
    )
    line = "Mark {n} stands at {n}, and nothing follows of it.\n"
    lines = tokens // COUNTER.text(line.replace("{n}", "12345"))
    text = "".join(line.replace("{n}", str(10_000 + n)) for n in range(lines))
    service.append(path, {"role": "user", "content": "Read it."}, {"role": "assistant", "content": text})
    service.append(path, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Read."})
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "llm"), entry["fallback_reason"]
    assert entry["tokens_in"] > 0.9 * tokens
    assert COUNTER.text(entry["summary"]) <= BOUND

    calls = models.calls(model)
    assert len(calls) == len(entry["passes"]) <= most
    prompts = [call["body"]["messages"][1]["content"] for call in calls]
    marks = [int(n) for prompt in prompts for n in re.findall(r"(?:^|> )Mark (\d{5}) stands", prompt, re.MULTILINE)]
    assert marks == list(range(10_000, 10_000 + lines))  # all of it, each line in one call, in order
    assert {one[end] for one in entry["passes"] for end in ("from_position", "to_position")} == {1, 2}
    assert all(f" piece {n}> " in "".join(prompts) for n in range(1, len(calls) - 1))
    sent = sum(COUNTER.text(message["content"]) for call in calls for message in call["body"]["messages"])
    print(f"{len(calls)} calls, sent {sent / entry['tokens_in']:.3f} of the span")  # noqa: T201 -- a figure
    assert sent <= 1.1 * entry["tokens_in"]

    identifier = path.removeprefix("conversations/")
    assert chain_problems(service.tenant_id, identifier) == []
    assert audit(service.tenant_id, identifier, COUNTER) == []
