from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections

from compaction_service.compactions import claims
from tests.inprocess import Clock, Service, service_of


def queued(service: Service, number: int) -> None:
    for n in range(number):
        path = service.create(
            messages=[{"role": r, "content": f"{n} {r} {k}"} for k in range(3) for r in ("user", "assistant")]
        )
        service.post(f"{path}/compactions", status=202)


def test_claim__one_tenant_has_a_queue__another_is_next(make_tenant: Callable[[], Any], clock: Clock) -> None:
    """The tenant with fewest claims in flight goes first, however late it came."""
    first, second = service_of(make_tenant(), clock), service_of(make_tenant(), clock)
    queued(first, 5)
    one = claims.claim()
    queued(second, 2)
    following = [claims.claim() for _ in range(4)]
    assert one is not None
    assert one.tenant_id == first.tenant_id
    owners = [claim.tenant_id for claim in following if claim]
    assert owners[0] == second.tenant_id
    assert owners.count(second.tenant_id) == 2
    with connections["default"].cursor() as cursor:
        cursor.execute("delete from compactions_work where tenant_id = any(%s)", [[first.tenant_id, second.tenant_id]])


def test_claim__within_a_tenant__the_urgent_goes_first(service: Service) -> None:
    queued(service, 3)
    path = service.create(
        messages=[{"role": r, "content": f"{r} {k}"} for k in range(3) for r in ("user", "assistant")]
    )
    urgent = service.post(f"{path}/compactions", {"trigger": "overflow"}, status=202)
    claim = service.claim()
    assert claim is not None
    assert str(claim.compaction_id) == urgent["id"]
