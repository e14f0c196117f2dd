"""Real transcripts through the whole service: after every step the context is read and judged from the outside."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit, bound_problems, chain_problems, context_problems
from tests.model_server import Control
from tests.transcripts import OPENAI, steps, transcript

COUNTER = counter_for("o200k_base", 1.0)


def replay(service: Service, name: str, window: int, most: int | None) -> dict[str, int]:
    given = transcript(name, most)
    reserve = min(4096, window // 4)
    bound = max(64, min(4096, min(int(0.8 * window), window - reserve) // 4))
    path = service.create(
        context_window=window,
        system=given.system,
        tools=given.tools,
        policy={"enabled": True, "reserve_output_tokens": reserve},
    )
    identifier = path.removeprefix("conversations/")
    problems: list[str] = []
    seen = {"contexts": 0, "degraded": 0, "overflow": 0}
    last_request = None
    appended = 0
    for step in steps(given.messages):
        service.append(path, *step)
        appended += len(step)
        last_request = next((m for m in reversed(step) if m["role"] == "user"), last_request)
        service.work_off()
        context = service.get(f"{path}/context", status=None)
        if "errors" in context:
            seen["overflow"] += 1
            assert context["errors"][0]["code"] == "context_overflow", context
            continue
        seen["contexts"] += 1
        found = context_problems(context, COUNTER, reserve=reserve, system=given.system)
        if last_request is not None and last_request not in context["messages"] and not context["degraded"]:
            found.append("the last user request is missing")
        if context["degraded"]:
            seen["degraded"] += 1
            plan = service.post(f"{path}/compactions", {"dry_run": True}, status=200)["plan"]
            if plan["irreducible"] is None and _tokens(service, path, plan["span"]) >= int(0.8 * window) // 10:
                found.append(f"degraded, though {plan['span']} could be covered")
        problems += [f"after {appended}: {problem}" for problem in found]
    log = service.compactions(path)
    problems += bound_problems(log, COUNTER, bound)
    problems += chain_problems(service.tenant_id, identifier)
    problems += audit(service.tenant_id, identifier, COUNTER)
    assert problems == []
    outcomes = [entry["outcome"] for entry in log]
    return {**seen, **{outcome: outcomes.count(outcome) for outcome in set(outcomes)}}


def _tokens(service: Service, path: str, span: Any) -> int:
    page = service.get(f"{path}/messages?from={span['from']}&to={span['to']}&limit=250")
    return sum(message["tokens"] for message in page["data"])


@pytest.mark.parametrize(
    ("name", "most"), [("aider", 60), ("openhands", 60), ("swe_agent", 60), ("tau_bench", 130), ("webdancer", 40)]
)
@pytest.mark.parametrize("summaries", ["model", "extractive"])
def test_replay__sample__every_context_is_valid_and_fits(
    service: Service, models: Control, model: str, name: str, most: int, summaries: str
) -> None:
    if summaries == "model":
        service.summarizer(models, model)
    seen = replay(service, name, 8_000, most)
    assert seen["contexts"] > 10
    assert seen.get("applied", 0) > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize("window", [8_000, 32_000])
@pytest.mark.parametrize("summaries", ["model", "extractive"])
def test_replay__whole_source__every_context_is_valid_and_fits(
    service: Service, models: Control, model: str, name: str, window: int, summaries: str
) -> None:
    if summaries == "model":
        service.summarizer(models, model)
    assert replay(service, name, window, None)["contexts"] > 10
