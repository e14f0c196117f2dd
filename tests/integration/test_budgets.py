"""A tenant's money of a month: put aside before a call, taken after it, and what happens when it is out."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from prometheus_client import REGISTRY

from compaction_service.compactions import jobs, preparing
from compaction_service.usage import budgets
from compaction_service.usage.models import Month, Reservation
from tenants import services
from tenants.scope import platform_scope, tenant_scope
from tests.inprocess import Service
from tests.integration.test_faults import chat
from tests.model_server import Control

PRICE = Decimal("0.001")  # US dollars per token, in and out


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted models cost something, by the registry."""
    known = preparing.summarizer_spec  # type: ignore[attr-defined]

    def spec(name: str) -> Any:
        return replace(known(name), input_price=PRICE, output_price=PRICE)

    monkeypatch.setattr(preparing, "summarizer_spec", spec)


def budget(service: Service, dollars: float | None) -> None:
    with platform_scope():
        services.tenant_set_limits(service.tenant_id, {"monthly_budget": dollars})


def shown(service: Service) -> Any:
    return service.get("tenant")["usage"]["budget"]


def test_budget__pays_the_calls__what_they_cost_is_taken_and_shown(
    service: Service, models: Control, model: str, priced: None
) -> None:
    service.summarizer(models, model)
    budget(service, 1000)
    entry = service.compact(chat(service))
    assert entry["method"] == "llm"
    assert entry["cost"] > 0
    found = shown(service)
    assert found["spent"] == pytest.approx(entry["cost"])
    assert (found["limit"], found["reserved"], found["exhausted_at"]) == (1000, 0, None)
    assert found["remaining"] == pytest.approx(1000 - entry["cost"])
    assert service.get("usage")["budget"] == found


def test_budget__rejected_answers__are_paid_for_too(
    service: Service, models: Control, model: str, priced: None
) -> None:
    service.summarizer(models, models.script(model, "refusal"))
    budget(service, 1000)
    entry = service.compact(chat(service))
    assert entry["method"] == "extractive"
    assert shown(service)["spent"] == pytest.approx(entry["cost"])
    assert entry["cost"] > 0


def test_budget__does_not_pay_the_call__is_extractive_and_no_model_is_called(
    service: Service, models: Control, model: str, priced: None
) -> None:
    service.summarizer(models, model)
    budget(service, 0.5)
    entry = service.compact(chat(service))
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == (
        "applied", "extractive", "budget_exhausted",
    )  # fmt: skip
    assert models.calls(model) == []
    assert service.calls(entry["id"]) == []
    assert shown(service)["exhausted_at"] is not None


def test_budget__out_and_no_fallback_allowed__fails(
    service: Service, models: Control, model: str, priced: None
) -> None:
    service.summarizer(models, model)
    budget(service, 0)
    entry = service.compact(chat(service, policy={"extractive_fallback": False}))
    assert (entry["outcome"], entry["reason"]) == ("failed", "budget_exhausted")


def test_budget__out__is_told_once_a_month(
    service: Service, models: Control, model: str, priced: None, caplog: pytest.LogCaptureFixture
) -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("compaction_budget_exhausted_total") or 0

    before = counted()
    service.summarizer(models, model)
    budget(service, 0)
    with caplog.at_level(logging.WARNING, logger="compaction_service.usage.budgets"):
        for _ in range(3):
            service.compact(chat(service))
    assert counted() == before + 1
    assert [record.message for record in caplog.records].count("budget exhausted") == 1


def test_budget__set_in_the_middle_of_a_month__counts_what_was_spent_before(
    service: Service, models: Control, model: str, priced: None
) -> None:
    service.summarizer(models, model)
    first = service.compact(chat(service))
    with tenant_scope(service.tenant_id):
        assert not Month.objects.exists()
    budget(service, first["cost"] + 0.001)
    assert service.compact(chat(service))["fallback_reason"] == "budget_exhausted"


def test_budget__model_without_a_price__is_called_all_the_same(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, model)
    budget(service, 0)
    entry = service.compact(chat(service))
    assert (entry["method"], entry["cost"]) == ("llm", 0)


def test_budget__many_calls_at_once__are_never_more_than_it_pays(tenant: Any) -> None:
    def reserve(_: int) -> bool:
        try:
            with tenant_scope(tenant.id):
                return budgets.reserve(Decimal(10), Decimal(3), seconds=60) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(reserve, range(24))) == 3
    with tenant_scope(tenant.id):
        found = budgets.spending()
    assert (int(found.spent), int(found.reserved)) == (0, 9)


def test_reservation__worker_gone__lapses_by_itself(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        assert budgets.reserve(Decimal(1), Decimal(1), seconds=60)
    with tenant_scope(tenant.id):
        assert budgets.reserve(Decimal(1), Decimal(1), seconds=60) is None
        Reservation.objects.update(until="2020-01-01T00:00:00Z")
        assert budgets.reserve(Decimal(1), Decimal(1), seconds=60)


def test_budget__late_call__is_taken_from_it(service: Service, models: Control, model: str, priced: None) -> None:
    service.summarizer(models, model)
    budget(service, 1000)
    path = chat(service)
    asked = service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        one = jobs.begin(claim)
        assert one is not None
        step = preparing.step_of(one)
    assert step is not None
    result, reservation = jobs._execute(claim, step)
    assert shown(service)["reserved"] > 0
    service.post(f"compactions/{asked['id']}/cancel", status=200)
    with tenant_scope(service.tenant_id):
        jobs.finish(claim, step, result, reservation)
    found = shown(service)
    assert (found["reserved"], found["spent"]) == (0, pytest.approx(float(result.spent.cost)))
    assert [call.status for call in service.calls(asked["id"])] == ["late"]


@pytest.mark.parametrize(
    ("limit", "spent", "reserved", "amount", "fits"),
    [(10, 0, 0, 10, True), (10, 5, 5, 1, False), (10, 9, 0, 1, True), (0, 0, 0, 0, False), (10, 11, 0, 0, False)],
)
def test_affordable__what_is_spent_and_put_aside__counts(
    limit: int, spent: int, reserved: int, amount: int, fits: bool
) -> None:
    assert budgets.affordable(*map(Decimal, (limit, spent, reserved, amount))) is fits


def test_deadline__of_the_whole_compaction__ends_calls_and_not_the_compaction(
    service: Service, models: Control, model: str, settings: Any
) -> None:
    service.summarizer(models, models.script(model, ["429:20", "honest"]))
    settings.COMPACTION_DEADLINE = 10
    entry = service.compact(chat(service))
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "extractive", "deadline")
    assert len(models.calls(model)) == 1
    assert service.clock.ahead > timedelta(seconds=20)
