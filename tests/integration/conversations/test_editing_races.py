"""An erasure while a compaction is queued or running (semantics 9 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from compaction_service.compactions import executing, jobs, steps
from compaction_service.compactions.models import Compaction, Pass, Work
from compaction_service.usage.models import Call
from tenants.scope import tenant_scope
from tests.conftest import Member
from tests.integration.conversations.drive import Driver, claim_of, run_jobs, said, texts_of, user
from tests.integration.conversations.test_editing import talk

pytestmark = pytest.mark.usefixtures("by_hand")


@pytest.fixture
def driver(tenant: Member) -> Driver:
    driver = Driver.create(tenant)
    driver.append(*talk(4), user("zebra.py"), said("zebra.py"), *talk(2))
    return driver


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Does something once, while the first pass works: after its input was read, before its result is written."""

    def register(work: Callable[[], Any]) -> None:
        waiting = [work]

        def execute(step: steps.Step) -> steps.Result:
            result = executing.execute(replace(step, model=None))
            if waiting:
                waiting.pop()()
            return replace(result, spent=steps.Spent(1000, 50, Decimal("0.25"), 10))

        monkeypatch.setattr(jobs, "execute", execute)

    return register


def test_running__message_of_its_span_erased__is_stale_at_once_and_nothing_is_applied(
    driver: Driver, during: Callable[[Callable[[], Any]], None]
) -> None:
    states: list[Any] = []

    def erase() -> None:
        driver.erase(9)
        driver.erase(10)
        states.append(driver.get()["compaction"])

    during(erase)
    ended = driver.compact()
    assert (ended["status"], ended["outcome"], ended["reason"]) == ("failed", "stale", "input_changed")
    assert states == [{"state": "idle", "live": None, "last": ended["id"]}]
    assert driver.chain() == []
    assert "zebra" not in driver.texts()
    driver.check()
    assert driver.compact()["outcome"] == "applied"
    driver.check()


def test_running__rewound_into_its_span__is_stale(driver: Driver, during: Callable[[Callable[[], Any]], None]) -> None:
    during(lambda: driver.rewind(6))
    assert driver.compact()["outcome"] == "stale"
    assert driver.context()["covered"] is None
    driver.check()


def test_running__message_after_its_span_erased__applies(
    driver: Driver, during: Callable[[Callable[[], Any]], None]
) -> None:
    during(lambda: driver.rewind(14))
    ended = driver.compact()
    assert ended["outcome"] == "applied"
    assert ended["to_position"] < 14
    driver.check()


def test_running__erased_message_between_passes__ends_the_job_and_its_written_outputs(
    driver: Driver, tenant: Member
) -> None:
    asked = driver.post(f"{driver.path}/compactions", {}).json()
    claim = claim_of(tenant)
    assert claim is not None
    with tenant_scope(tenant.id):
        begun = jobs.begin(claim)
        assert begun is not None
        Pass.objects.filter(id=begun.id).update(output="about zebra.py")
    driver.erase(9)
    driver.erase(10)
    assert "zebra" not in driver.texts()
    jobs.run(claim)  # a worker that comes late finds nothing
    assert driver.compaction(asked["id"])["outcome"] == "stale"
    assert claim_of(tenant) is None
    driver.check()


def test_running__erased__late_result_is_refused_and_its_cost_recorded(
    tenant: Member, during: Callable[[Callable[[], Any]], None]
) -> None:
    driver = Driver.create(tenant, policy={"reserve_output_tokens": 500, "summarizer_model": "gpt-4o-mini"})
    driver.append(*talk(6))
    during(lambda: driver.erase(1))
    ended = driver.compact()
    with tenant_scope(tenant.id):
        call = Call.objects.get()
        assert (call.status, call.cost, str(call.compaction_id)) == ("late", Decimal("0.25"), ended["id"])
    assert ended["outcome"] == "stale"


def test_running__enabled_and_over_the_limit__the_next_one_starts_at_once(
    tenant: Member, during: Callable[[Callable[[], Any]], None]
) -> None:
    driver = Driver.create(tenant, policy={"enabled": True, "reserve_output_tokens": 500, "summary_max_tokens": 200})
    during(lambda: driver.erase(1))
    driver.append(*talk(20))
    run_jobs(tenant)
    with tenant_scope(tenant.id):
        assert list(Compaction.objects.order_by("id").values_list("outcome", flat=True)) == ["stale", "applied"]
    driver.check()


def test_queued__message_erased__plans_again(driver: Driver, tenant: Member) -> None:
    asked = driver.post(f"{driver.path}/compactions", {}).json()
    driver.erase(9)
    assert driver.compaction(asked["id"])["status"] == "queued"
    run_jobs(tenant)
    assert driver.compaction(asked["id"])["outcome"] == "applied"
    driver.check()


@pytest.mark.parametrize("state", ["idle", "queued", "compacted"])
def test_conversation_erased__leaves_no_text_of_it(driver: Driver, tenant: Member, state: str) -> None:
    other = Driver.create(tenant, metadata={"of": "another"})
    other.append(user("kept text"))
    answer = driver.post(f"{driver.path}/messages", {"messages": [user("zebra")]}, **{"Idempotency-Key": "k"})
    assert answer.status_code == 201
    if state == "queued":
        driver.post(f"{driver.path}/compactions", {})
    if state == "compacted":
        driver.compact()
    receipt = driver.client.delete(driver.path).json()
    assert receipt["counts"]["messages"] == 15
    assert receipt["counts"]["queued_work"] == (state == "queued")
    assert receipt["counts"]["compactions"] == (state != "idle")
    assert receipt["counts"]["summaries"] == (state == "compacted")
    assert receipt["counts"]["idempotency_answers"] == 1
    left = texts_of(tenant)
    assert "zebra" not in left
    assert "quick brown" not in left
    assert "kept text" in left
    assert driver.client.get(driver.path).status_code == 404
    with tenant_scope(tenant.id):
        assert not Work.objects.filter(tenant_id=tenant.id).exists()


def test_conversation_erased__while_its_compaction_runs__leaves_its_cost_only(
    tenant: Member, during: Callable[[Callable[[], Any]], None]
) -> None:
    driver = Driver.create(tenant, policy={"reserve_output_tokens": 500, "summarizer_model": "gpt-4o-mini"})
    driver.append(*talk(6))
    during(lambda: driver.client.delete(driver.path))
    driver.post(f"{driver.path}/compactions", {})
    run_jobs(tenant)
    with tenant_scope(tenant.id):
        assert not Compaction.objects.exists()
        assert not Pass.objects.exists()
        assert Call.objects.get().status == "late"
    assert "quick brown" not in texts_of(tenant)
