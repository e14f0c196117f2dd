"""Values said once, early, through six compactions of the service: with a model that keeps what it is asked to, and
without one (semantics 7)."""

from __future__ import annotations

import json
from typing import Any

from tests.inprocess import Service
from tests.model_server import Control
from tests.quality.facts import PLANTED, ROUNDS

POLICY = {"preserve_recent_turns": 1, "target": 0}


def talk(number: int) -> list[Any]:
    """A round: a few requests, each answered after a look at a file."""
    out: list[Any] = []
    for nth in range(4):
        call = f"call_{number}_{nth}"
        path = json.dumps({"path": f"lib/part_{number}_{nth}.py"})
        out += [
            {"role": "user", "content": f"Please tidy up part {nth} of round {number}, as we discussed it before."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": {"name": "read", "arguments": path}}],
            },
            {"role": "tool", "tool_call_id": call, "content": f"value = {number * 10 + nth}\n" * 150},
            {"role": "assistant", "content": f"Part {nth} of round {number} is tidy: names are shorter. " * 5},
        ]
    return out


def told(service: Service, path: str) -> list[str]:
    """The values that are still in the summary after six compactions."""
    for sentence in PLANTED.values():
        service.append(path, {"role": "user", "content": sentence}, {"role": "assistant", "content": "Noted, thanks."})
    for number in range(ROUNDS):
        service.append(path, *talk(number))
        made = service.compact(path)
        assert made["outcome"] == "applied", made
    (summary,) = service.get(f"{path}/summaries?state=active")["data"]
    return [value for value in PLANTED if value in summary["text"]]


def test_six_compactions__without_a_model__odd_values_survive(service: Service) -> None:
    kept = told(service, service.create(context_window=32_000, policy=POLICY))

    assert len(kept) >= 17, set(PLANTED) - set(kept)


def test_six_compactions__by_a_model_that_keeps_names__those_in_its_summary_survive(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    kept = told(service, service.create(context_window=32_000, policy=POLICY))

    # The scripted model keeps names, paths and numbers as far as its length allows; plain words it does not know.
    assert {"INV-99231", "srv/kestrel/main.conf", "ERR_QUOTA_7", "2031-02-17", "node7"} <= set(kept), kept
