from __future__ import annotations

import re
import uuid
from datetime import timedelta
from io import StringIO
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from prometheus_client import REGISTRY

from compaction_service.compactions import queue
from compaction_service.compactions.models import Work
from tests.inprocess import Service

CHAT = [{"role": role, "content": "word " * 500} for role in ("user", "assistant", "user", "assistant")]


def work(tenant_id: uuid.UUID, **ages: float) -> None:
    """A row of the queue; each time is so many seconds ago."""
    now = timezone.now()
    times: dict[str, Any] = {name: now - timedelta(seconds=age) for name, age in ages.items()}
    row = Work.objects.create(compaction_id=uuid.uuid4(), tenant_id=tenant_id, **{"next_at": now, **times})
    if "created_at" in times:
        Work.objects.filter(pk=row.pk).update(created_at=times["created_at"])


def test_by_tenant__jobs_in_every_state__are_told_apart_with_their_ages(service: Service) -> None:
    work(service.tenant_id, next_at=300, created_at=900)
    work(service.tenant_id, next_at=10)
    work(service.tenant_id, next_at=-60)
    work(service.tenant_id, next_at=500, lease_until=-20)
    work(service.tenant_id, next_at=500, lease_until=50)
    [one] = [found for found in queue.by_tenant() if found.tenant_id == service.tenant_id]
    assert (one.queued, one.later, one.running, one.expired) == (2, 1, 1, 1)
    assert 300 <= one.oldest_due < 330
    assert 900 <= one.oldest < 930


def test_by_tenant__only_running_jobs__nothing_is_due(service: Service) -> None:
    work(service.tenant_id, next_at=500, lease_until=-20)
    [one] = [found for found in queue.by_tenant() if found.tenant_id == service.tenant_id]
    assert (one.running, one.oldest_due) == (1, 0)


def test_jobs__command__shows_tenants_by_name_and_the_sum(service: Service, stranger: Any) -> None:
    work(service.tenant_id, next_at=3725)
    work(stranger.id)
    out = StringIO()
    call_command("jobs", stdout=out)
    with connection.cursor() as cursor:
        cursor.execute("delete from compactions_work where tenant_id = %s", [stranger.id])
    text = out.getvalue()
    assert re.search(rf"^ {re.escape(stranger.tenant.name)} +1 +0 +0 +0 +0:00:0\d +0:00:0\d *$", text, re.MULTILINE)
    assert "1:02:0" in text
    assert re.search(r"^ all ", text, re.MULTILINE)


def test_metrics__compactions_and_queue__are_told_without_tenants(service: Service) -> None:
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0

    labels = {"outcome": "applied", "trigger": "manual"}
    before = counted("compaction_compactions_total", **labels)
    passes = counted("compaction_pass_seconds_count", kind="summary")
    path = service.create()
    service.append(path, *CHAT)
    service.compact(path)
    assert counted("compaction_compactions_total", **labels) == before + 1
    assert counted("compaction_pass_seconds_count", kind="summary") == passes + 1
    work(service.tenant_id, next_at=300)
    text = service.client.get("/metrics").content.decode()
    assert re.search(r'^compaction_jobs\{state="queued"\} [1-9]', text, re.MULTILINE)
    assert re.search(r"^compaction_oldest_due_seconds (?:[3-9]\d\d|\d{4,})", text, re.MULTILINE)
    assert str(service.tenant_id) not in text
