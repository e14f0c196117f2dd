from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from compaction_service.compactions import ending, executing, following, jobs, preparing
from compaction_service.compactions.models import Work
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.model_server import Control

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))
CHAT = [{"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")]


def run_until_idle(service: Service, most: int = 60) -> int:
    """Executions of passes that crash; the number run until no work was left."""
    for number in range(most):
        service.clock.forward(timedelta(seconds=2))
        claim = service.claim()
        if claim is None:
            return number
        with contextlib.suppress(jobs.Crashed):
            jobs.run(claim)
    raise AssertionError("the job never ends")


@pytest.mark.parametrize("broken", ["open_job", "step_of", "end"])
def test_run__the_same_failure_each_time__the_compaction_ends_as_failed(
    service: Service, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    asked = service.post(f"{path}/compactions", status=202)
    real_end = ending.end

    def fail(*arguments: Any, **options: Any) -> Any:
        if broken == "end" and options.get("follow") is False:
            return real_end(*arguments, **options)
        raise KeyError("a fault of ours")

    monkeypatch.setattr(jobs, broken, fail)
    if broken == "end":
        monkeypatch.setattr(following, "apply", fail)
    run_until_idle(service)

    done = service.get(f"compactions/{asked['id']}")
    assert (done["status"], done["outcome"]) == ("failed", "failed")
    monkeypatch.undo()
    with tenant_scope(service.tenant_id):
        assert Conversation.objects.get(id=asked["conversation"]).compaction_live is None


def test_claim__a_row_that_was_executed_very_often__is_claimed_all_the_same(service: Service) -> None:
    path = service.create()
    service.append(path, *CHAT)
    asked = service.post(f"{path}/compactions", status=202)
    Work.objects.filter(pk=asked["id"]).update(attempts=32767)

    claim = service.claim()

    assert claim is not None
    assert str(claim.compaction_id) == asked["id"]


def test_finish__after_a_cancel__the_late_calls_cost_is_in_the_log_entry(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create()
    service.append(path, *CHAT)
    asked = service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        one = jobs.begin(claim)
        assert one is not None
        step = preparing.step_of(one)
    assert step is not None
    result = executing.execute(step)
    service.post(f"compactions/{asked['id']}/cancel", status=200)

    with tenant_scope(service.tenant_id):
        jobs.finish(claim, step, result)

    done = service.get(f"compactions/{asked['id']}")
    assert done["outcome"] == "cancelled"
    assert done["llm_tokens_in"] == result.spent.tokens_in > 0
    assert [call.status for call in service.calls(asked["id"])] == ["late"]
