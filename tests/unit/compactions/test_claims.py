from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections

from compaction_service.compactions import claims, clock
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.models import Turn, Work
from tenants import services
from tenants.models import Tenant
from tenants.scope import platform_scope
from tests.inprocess import Clock, Service


def queued(service: Service, number: int) -> None:
    for n in range(number):
        path = service.create(
            messages=[{"role": r, "content": f"{n} {r} {k}"} for k in range(3) for r in ("user", "assistant")]
        )
        service.post(f"{path}/compactions", status=202)


def rows(tenant: uuid.UUID, number: int, **fields: Any) -> None:
    """Rows of the queue alone, without compactions."""
    Work.objects.bulk_create(
        [
            Work(compaction_id=uuid.uuid4(), tenant_id=tenant, **{"next_at": clock.later(), **fields})
            for _ in range(number)
        ]
    )


@pytest.fixture
def tenants(make_tenant: Any, clock: Clock) -> Iterator[list[uuid.UUID]]:
    """Three tenants, alone in the queue."""
    made = [make_tenant().id for _ in range(3)]
    yield made
    Work.objects.filter(tenant_id__in=made).delete()
    Turn.objects.filter(tenant_id__in=made).delete()


def limited(tenant: uuid.UUID, **limits: int) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant, limits)


def weighted(tenant: uuid.UUID, weight: int) -> None:
    with platform_scope():
        services.tenant_set_weight(tenant, weight)


def status_set(service: Service, status: str) -> None:
    with platform_scope():
        services.tenant_set_status(service.tenant_id, Tenant.Status(status))


def done(claim: Claim) -> None:
    Work.objects.filter(pk=claim.compaction_id).delete()


def one_after_another(number: int) -> list[uuid.UUID]:
    """Whose jobs a single worker takes, each ended before the next is claimed."""
    found = []
    for _ in range(number):
        claim = claims.claim()
        assert claim is not None
        found.append(claim.tenant_id)
        done(claim)
    return found


def test_claim__one_tenant_has_a_queue__another_is_next(tenants: list[uuid.UUID]) -> None:
    """The tenant with fewest claims in flight goes first, however late it came."""
    first, second, _ = tenants
    rows(first, 5)
    one = claims.claim()
    rows(second, 2)
    owners = [claim.tenant_id for _ in range(4) if (claim := claims.claim())]
    assert one is not None
    assert one.tenant_id == first
    assert owners[0] == second
    assert owners.count(second) == 2


def test_claim__one_worker_and_a_long_queue_of_another__waits_for_one_job(tenants: list[uuid.UUID]) -> None:
    """Nothing is in flight whenever a single worker claims: turns must be remembered."""
    first, second, third = tenants
    rows(first, 1000)
    assert one_after_another(20) == [first] * 20
    rows(second, 2)
    assert one_after_another(1) == [second]
    rows(third, 1)
    assert third in one_after_another(2)
    owners = one_after_another(6)
    assert second in owners[:2]
    assert owners.count(first) >= 4


def test_claim__a_tenant_that_did_nothing_for_long__gets_no_arrears(tenants: list[uuid.UUID]) -> None:
    first, second, _ = tenants
    rows(first, 100)
    one_after_another(50)
    rows(second, 50)
    owners = one_after_another(20)
    assert abs(owners.count(first) - owners.count(second)) <= 1


def test_claim__weights__shares_follow_them_in_turns_and_in_flight(tenants: list[uuid.UUID]) -> None:
    first, second, _ = tenants
    weighted(first, 3)
    rows(first, 60)
    rows(second, 60)
    assert 14 <= one_after_another(20).count(first) <= 16
    owners = [claim.tenant_id for _ in range(40) if (claim := claims.claim())]
    assert 29 <= owners.count(first) <= 31


def test_claim__within_a_tenant__the_urgent_goes_first_and_then_the_older(tenants: list[uuid.UUID]) -> None:
    first, *_ = tenants
    for priority in (0, 2, 1, 3, 0):
        rows(first, 1, priority=priority)
    order = list(Work.objects.filter(tenant_id=first).order_by("-priority", "created_at").values_list("pk", flat=True))
    assert [claim.compaction_id for _ in range(5) if (claim := claims.claim())] == order


def test_claim__limit_of_the_tenant__holds_among_workers_that_claim_at_once(tenants: list[uuid.UUID]) -> None:
    first, second, _ = tenants
    limited(first, compactions_in_flight=3)
    rows(first, 40)

    def claim(_: int) -> Claim | None:
        try:
            return claims.claim()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        taken = [found for found in pool.map(claim, range(24)) if found]
    assert len(taken) == 3
    assert claims.due() == 0
    assert not claims.claim()
    rows(second, 1)
    other = claims.claim()
    assert other is not None
    assert other.tenant_id == second
    claims.release(taken[0])
    assert claims.due() == 1
    assert claims.waits_for(taken[0])
    limited(first, compactions_in_flight=10)
    assert not claims.waits_for(taken[0])  # its wake-up found room
    assert claims.claim() is not None


def test_claim__within_a_tenant__an_overflow_goes_before_a_request(service: Service) -> None:
    queued(service, 3)
    path = service.create(
        messages=[{"role": r, "content": f"{r} {k}"} for k in range(3) for r in ("user", "assistant")]
    )
    urgent = service.post(f"{path}/compactions", {"trigger": "overflow"}, status=202)
    claim = service.claim()
    assert claim is not None
    assert str(claim.compaction_id) == urgent["id"]


def test_claim__long_queue__is_read_by_index(tenants: list[uuid.UUID]) -> None:
    rows(tenants[0], 3000)
    with connections["owner"].cursor() as cursor:
        cursor.execute("analyze compactions_work")
    values = {"in_flight": 64, "ahead": clock.ahead(), "tenants": 8}
    with connection.cursor() as cursor:
        cursor.execute(f"explain (format text) {claims._TENANTS}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on compactions_work" not in plan


def test_claim__machine_with_a_wrong_clock__leases_end_by_the_databases(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    from django.utils import timezone

    queued(service, 1)
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(hours=5))
    claim = service.claim()
    assert claim is not None
    monkeypatch.setattr(timezone, "now", lambda: real() + timedelta(hours=5))
    assert service.claim() is None
    service.clock.forward(timedelta(seconds=21))
    again = service.claim()
    assert again is not None
    assert (again.compaction_id, again.attempts) == (claim.compaction_id, 2)


def test_claim__suspended_tenant__its_jobs_wait_until_it_is_active_again(service: Service) -> None:
    queued(service, 1)
    status_set(service, "suspended")
    assert (service.work_off(), claims.due()) == (0, 0)

    status_set(service, "active")

    assert service.work_off() == 1
    [entry] = service.get("compactions")["data"]
    assert entry["outcome"] is not None


def test_claim__suspended_between_two_passes__the_second_waits(service: Service) -> None:
    queued(service, 1)
    taken = claims.claim()
    assert taken is not None
    status_set(service, "suspended")
    assert claims.release(taken)
    assert claims.claim() is None
