"""Real transcripts under each preset: every context valid, every bound held, and no model called for nothing."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import pytest

from compaction_service.engine.policy import PRESETS, resolve
from compaction_service.engine.policy import limit as limits_of
from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.integration.presets.transcripts import given
from tests.invariants import bound_problems, chain_problems, context_problems
from tests.model_server import Control
from tests.transcripts import steps

COUNTER = counter_for("o200k_base", 1.0)
SAMPLE = ("airline", "coding", "tau_bench", "openhands", "webdancer", "intercode", "aider", "crosswoz_zh")


def replay(service: Service, preset: str, name: str, window: int, most: int | None = None) -> Tally[str]:
    """Play a transcript, compacting after each step; asserts all that must hold, and tells what happened."""
    told = given(name, most)
    policy, _ = resolve([("", {"preset": preset})])
    limits = limits_of(policy, window, None)
    path = service.create(
        model="gpt-4o", context_window=window, system=told.system, tools=told.tools,
        policy={"preset": preset, "enabled": True, "reserve_output_tokens": limits.reserve},
    )  # fmt: skip
    problems: list[str] = []
    seen: Tally[str] = Tally()
    at = 0
    for step in steps(told.messages):
        service.append(path, *step)
        at += len(step)
        service.work_off()
        problems += [f"after {at}: {found}" for found in look(service, path, told.system, limits.reserve, seen)]
    log = service.compactions(path)
    problems += bound_problems(log, COUNTER, limits.bound)
    problems += chain_problems(service.tenant_id, path.removeprefix("conversations/"))
    problems += progress_problems(log)
    assert problems == []
    seen.update(entry["outcome"] for entry in log)
    seen["calls"] = sum(one["model"] is not None for entry in log for one in entry["passes"])
    return seen


def look(service: Service, path: str, system: Any, reserve: int, seen: Tally[str]) -> list[str]:
    """What is wrong with the context as it is now, with nothing left to do."""
    context = service.get(f"{path}/context", status=None)
    if "errors" in context:  # the last request alone is larger than the window
        seen["overflow"] += 1
        return [] if context["errors"][0]["code"] == "context_overflow" else [str(context)]
    seen["contexts"] += 1
    found = context_problems(context, COUNTER, reserve=reserve, system=system)
    if context["degraded"]:
        seen["degraded"] += 1
        plan = service.post(f"{path}/compactions", {"dry_run": True}, status=200)["plan"]
        if plan["irreducible"] is None and plan["tokens"] - plan["predicted_tokens"] > context["meter"]["limit"] // 10:
            found.append(f"degraded, though {plan['span']} could be covered")
    return found


def progress_problems(log: list[Any]) -> list[str]:
    """Each model call was for a compaction that made the context smaller, and each of those went further."""
    found, covered = [], 0
    for entry in log:
        called = any(one["model"] for one in entry["passes"])
        if entry["outcome"] == "applied":
            if entry["to_position"] <= covered:
                found.append(f"{entry['id']} covered nothing new")
            covered = entry["to_position"]
        elif called:
            found.append(f"{entry['id']} called a model and ended {entry['outcome']} ({entry['reason']})")
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_replay__shipped_transcript_in_a_small_window__holds(
    service: Service, models: Control, model: str, preset: str
) -> None:
    service.summarizer(models, model)
    told = replay(service, preset, "airline", 6_000, 70)
    assert told["applied"] >= 1
    assert told["degraded"] == 0
    assert told["calls"] <= 8, told


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("window", [8_000, 32_000, 128_000])
@pytest.mark.parametrize("summaries", ["model", "extractive"])
@pytest.mark.parametrize("name", SAMPLE)
def test_replay__any_transcript_and_window__holds(
    service: Service, models: Control, model: str, preset: str, window: int, summaries: str, name: str
) -> None:
    if summaries == "model":
        service.summarizer(models, model)
    told = replay(service, preset, name, window, 400)
    print(preset, window, summaries, name, dict(told))  # noqa: T201 -- with -s, what there was to see
    assert told["calls"] <= 5 + told["contexts"]
