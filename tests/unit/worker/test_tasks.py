from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.response import Response

from compaction_service.api import idempotency
from compaction_service.api.models import IdempotencyKey
from tenants.scope import tenant_scope
from worker import app, limits, tasks

MARK = b"m" * 32


def answered(member: Any, *keys: str, hours: int = 0) -> None:
    with tenant_scope(member.id):
        for key in keys:
            idempotency.answer_once(key, MARK, lambda: Response({}))
        IdempotencyKey.objects.filter(key__in=keys).update(created_at=timezone.now() - timedelta(hours=hours))


def keys_of(member: Any) -> list[str]:
    with tenant_scope(member.id):
        return sorted(IdempotencyKey.objects.values_list("key", flat=True))


def test_purge__answers_of_all_tenants_past_their_day__are_deleted_in_batches(
    tenant: Any, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency.purge, "__defaults__", (2,))
    monkeypatch.setattr(idempotency, "PURGED_AT_ONCE", 2)
    for member in (tenant, stranger):
        answered(member, "a", "b", "c", hours=25)
        answered(member, "young", hours=23)
    for _ in range(2):  # harmless twice
        tasks.purge()
        assert (keys_of(tenant), keys_of(stranger)) == (["young"], ["young"])


def test_schedule__every_task__is_one_of_ours() -> None:
    scheduled = {entry["task"] for entry in app.app.conf.beat_schedule.values()}
    assert {"compactions.sweep", "idempotency.purge"} <= scheduled <= set(app.app.tasks)
    assert idempotency.KEEP.total_seconds() > limits.PURGE
