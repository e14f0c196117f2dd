"""A model that keeps failing is left alone for a while, by all workers (semantics 7, Retry)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from compaction_service.compactions.models import Breaker
from compaction_service.llm.breaker import DEFAULT_POLICY
from tenants.scope import tenant_scope
from tests.inprocess import Service, service_of
from tests.integration.test_faults import chat
from tests.model_server import Control

PAUSE = timedelta(seconds=DEFAULT_POLICY.pause + 1)


@pytest.mark.parametrize(("behaviour", "calls"), [("status:500", 5), ("status:401", 1)])
def test_breaker__model_failed_before__is_not_called_by_the_next_job(
    service: Service, models: Control, model: str, behaviour: str, calls: int
) -> None:
    service.summarizer(models, models.script(model, behaviour))
    service.compact(chat(service))
    entry = service.compact(chat(service))
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "extractive", "breaker_open")
    assert len(models.calls(model)) == calls
    assert service.calls(entry["id"]) == []


def test_breaker__after_the_pause__one_call_probes_and_success_closes_it(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, models.script(model, ["status:401", "honest"]))
    paths = [chat(service) for _ in range(3)]
    service.compact(paths[0])
    service.clock.forward(PAUSE)
    assert service.compact(paths[1])["method"] == "llm"
    assert service.compact(paths[2])["method"] == "llm"
    with tenant_scope(service.tenant_id):
        assert not Breaker.objects.exists()


def test_breaker__while_one_call_probes__the_others_are_refused(service: Service, models: Control, model: str) -> None:
    from compaction_service.compactions import jobs

    service.summarizer(models, models.script(model, "status:401"))
    paths = [chat(service) for _ in range(3)]
    service.compact(paths[0])
    service.clock.forward(PAUSE)
    for path in paths[1:]:
        service.post(f"{path}/compactions", status=202)
    begun = []
    for _ in range(2):
        claim = service.claim()
        assert claim is not None
        with tenant_scope(service.tenant_id):
            one = jobs.begin(claim)
        assert one is not None
        begun.append(one.model)
    assert begun == [model, ""]


def test_breaker__probe_fails__is_open_again(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, models.script(model, "status:401"))
    paths = [chat(service) for _ in range(3)]
    service.compact(paths[0])
    service.clock.forward(PAUSE)
    assert service.compact(paths[1])["fallback_reason"] == "authentication"
    assert service.compact(paths[2])["fallback_reason"] == "breaker_open"
    assert len(models.calls(model)) == 2


def test_breaker__summarizer_changed__is_closed(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, models.script(model, ["status:401", "honest"]))
    paths = [chat(service) for _ in range(2)]
    service.compact(paths[0])
    service.patch("tenant", {"summarizer": {"api_key": models.key}})
    assert service.compact(paths[1])["method"] == "llm"


def test_breaker__open__the_next_model_writes_the_summary(service: Service, models: Control, model: str) -> None:
    second = f"{model}-2"
    service.summarizer(models, models.script(model, "status:401"), second)
    paths = [chat(service) for _ in range(2)]
    service.compact(paths[0])
    entry = service.compact(paths[1])
    assert (entry["method"], entry["model"], entry["fallback_reason"]) == ("llm", second, "breaker_open")


def test_breaker__of_another_tenant__is_its_own(service: Service, stranger: Any, models: Control, model: str) -> None:
    service.summarizer(models, models.script(model, ["status:401", "honest"]))
    service.compact(chat(service))
    other = service_of(stranger, service.clock)
    other.summarizer(models, model)
    assert other.compact(chat(other))["method"] == "llm"
