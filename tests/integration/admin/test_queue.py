from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from compaction_service.compactions import breakers
from compaction_service.compactions.models import Work
from compaction_service.usage.models import Month
from tenants import services
from tenants.scope import platform_scope, tenant_scope
from tests.conftest import Member


def job(tenant: Member, **ages: float) -> str:
    now = timezone.now()
    times: dict[str, Any] = {name: now - timedelta(seconds=age) for name, age in {"next_at": -9000, **ages}.items()}
    return str(Work.objects.create(compaction_id=uuid.uuid4(), tenant_id=tenant.id, priority=3, **times).pk)[:13]


def test_jobs__in_every_state__are_listed_with_the_queue_of_their_tenant(root: Client, tenant: Member) -> None:
    found = {
        "later": job(tenant),
        "running": job(tenant, lease_until=-9000),
        "expired": job(tenant, next_at=300, lease_until=20),
    }
    page = root.get("/admin/compactions/work/", {"tenant": str(tenant.id)}).content.decode()
    for shown in (*found.values(), tenant.tenant.name, "overflow", "Longest due"):
        assert shown in page
    for state, key in found.items():
        page = root.get("/admin/compactions/work/", {"tenant": str(tenant.id), "state": state}).content.decode()
        assert [other for other in found.values() if other in page] == [key]
    Work.objects.filter(tenant_id=tenant.id).delete()


def test_breakers__of_a_model_that_failed__are_listed(root: Client, tenant: Member) -> None:
    with tenant_scope(tenant.id):
        breakers.note(b"k" * 32, "a-broken-model", "fatal", timezone.now())
    page = root.get("/admin/compactions/breaker/", {"tenant": str(tenant.id)}).content.decode()
    assert "a-broken-model" in page
    assert "open" in page


def test_budgets__of_a_month__are_listed_with_the_limit(root: Client, tenant: Member) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"monthly_budget": 1250})
    with tenant_scope(tenant.id):
        Month.objects.create(month=timezone.now().date().replace(day=1), cost="12.5")
    page = root.get("/admin/usage/month/", {"tenant": str(tenant.id)}).content.decode()
    assert "12.5" in page
    assert "1,250" in page
