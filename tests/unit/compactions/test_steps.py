from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from compaction_service.llm import client
from tests.inprocess import Service
from tests.model_server import Control

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))
CHAT = [{"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")]


def test_resummarize__never_within_the_bound__as_many_passes_as_allowed(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, models.script(model, "long_then_short"))
    path = service.create(policy={"resummarize_max_passes": 1, "summary_max_tokens": 250})
    service.append(path, *CHAT)

    done = service.compact(path)

    assert [one["kind"] for one in done["passes"]] == ["summary", "resummarize"]
    assert done["outcome"] == "applied"


@pytest.mark.parametrize("told", [10**12, -5])
def test_call__tokens_and_cost_that_cannot_be__are_counted_instead_and_the_summary_is_used(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    service.summarizer(models, model)
    path = service.create()
    service.append(path, *CHAT)
    real = client.complete

    def lying(request: Any) -> Any:
        answer = real(request)
        return replace(answer, tokens_in=told, tokens_out=told, cost=Decimal(told))

    monkeypatch.setattr(client, "complete", lying)
    done = service.compact(path)

    assert (done["outcome"], done["method"]) == ("applied", "llm")
    assert len(models.calls(model)) == 1
    assert 0 < done["llm_tokens_in"] < 100_000
