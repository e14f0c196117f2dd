"""Erasing by age (semantics 9)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction_service.conversations import retention
from compaction_service.conversations.models import Conversation
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.conftest import Member
from tests.integration.conversations.drive import Driver, user


def _aged(member: Member, days: float) -> Driver:
    driver = Driver.create(member)
    driver.append(user("old text"))
    with tenant_scope(member.id):
        Conversation.objects.filter(id=driver.id).update(updated_at=timezone.now() - timedelta(days=days))
    return driver


def _keep(member: Member, days: int | None) -> None:
    with tenant_scope(member.id):
        Tenant.objects.filter(id=member.id).update(retention_days=days)


def _there(driver: Driver) -> bool:
    return bool(driver.client.get(driver.path).status_code == 200)


def test_expire__untouched_for_longer_than_the_tenant_keeps_them__are_erased(
    make_tenant: Callable[[], Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    short, keeps_all = make_tenant(), make_tenant()
    _keep(short, 30)
    old = [_aged(short, 31) for _ in range(5)]
    young, kept = _aged(short, 29), _aged(keeps_all, 900)
    assert retention.conversations_expire() >= 5
    assert [_there(driver) for driver in old] == [False] * 5
    assert _there(young)
    assert _there(kept)
    retention.conversations_expire()
    assert _there(young)


def test_expire__touched_since_it_was_named__is_kept(tenant: Member) -> None:
    driver = _aged(tenant, 31)
    before = timezone.now() - timedelta(days=30)
    driver.append(user("back again"))
    with tenant_scope(tenant.id):
        conversation_id = Conversation.objects.get().id
    assert retention._erase(tenant.id, conversation_id, before) is False
    assert _there(driver)


def test_expire_task__is_on_the_schedule_and_erases(tenant: Member) -> None:
    from worker import tasks
    from worker.app import app

    assert "conversations.expire" in {entry["task"] for entry in app.conf.beat_schedule.values()}
    _keep(tenant, 30)
    old = _aged(tenant, 31)
    tasks.expire()
    assert not _there(old)
