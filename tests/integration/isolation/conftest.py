"""A tenant who has a row in every table, with a mark in every text, and another who must meet none of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from compaction_service.compactions.models import Breaker
from compaction_service.conversations.models import ModelCalibration
from compaction_service.usage.models import Month, Reservation
from tenants.models import Member as Membership
from tenants.scope import platform_scope, tenant_scope
from tests.conftest import Member
from tests.inprocess import Clock, Service, service_of
from tests.model_server import Control

TURNS = 6


@dataclass
class House:
    """The first tenant's things: what a path may name, and the word that stands in all of its texts."""

    member: Member
    service: Service
    mark: str
    names: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def house(tenant: Member, clock: Clock, models: Control) -> Iterator[House]:
    """A furnished tenant. A new table needs a row here: test_tables__all_of_them__have_a_row_to_steal says so."""
    made = House(tenant, service_of(tenant, clock), mark=f"mark{uuid.uuid4().hex}")
    _furnish(made, models)
    yield made
    with tenant_scope(tenant.id):
        from compaction_service.compactions.models import Work
        from compaction_service.conversations.models import Recount

        Work.objects.filter(tenant_id=tenant.id).delete()
        Recount.objects.filter(tenant_id=tenant.id).delete()


@pytest.fixture
def burglar(make_tenant: Callable[[], Member], clock: Clock) -> Service:
    """The other tenant."""
    return service_of(make_tenant(), clock)


def _furnish(house: House, models: Control) -> None:
    service, mark = house.service, house.mark
    server = {"model": mark, "api_base": models.base_url, "api_key": models.key, "extra_headers": {"X-Mark": mark}}
    service.patch("tenant", {"summarizer": server, "policy": {"instructions": mark}})
    service.patch("tenant", {"retention_days": 3650})
    key = service.post("api-keys", {"name": mark, "scopes": ["read"]})
    path = _conversation(service, mark, f"first-{mark}")
    applied = service.compact(path, focus=mark)
    assert (applied["outcome"], applied["method"]) == ("applied", "llm")
    queued = _conversation(service, mark, f"second-{mark}")
    service.post(f"{queued}/compactions", {"focus": mark}, status=202)
    recounted = _conversation(service, mark, f"third-{mark}")
    service.patch(recounted, {"model": "gpt-4"})
    with tenant_scope(house.member.id):
        ModelCalibration.objects.create(tenant_id=house.member.id, model=mark, tokenizer="o200k_base", factor=1.1)
        month = timezone.now().date().replace(day=1)
        Month.objects.create(tenant_id=house.member.id, month=month, cost=1)
        Reservation.objects.create(tenant_id=house.member.id, month=month, amount=1, until=timezone.now())
        Breaker.objects.create(
            tenant_id=house.member.id, key=mark.encode()[:32], model=mark, failures=1, changed_at=timezone.now()
        )
    with platform_scope():
        user = User.objects.create(username=f"user-{house.member.id}")
        Membership.unscoped.create(user=user, tenant_id=house.member.id, role="owner")
    house.names = {
        "ref": path.removeprefix("conversations/"),
        "external": f"first-{mark}",
        "position": "1",
        "compaction_id": applied["id"],
        "summary_id": service.get(f"{path}/summaries")["data"][0]["id"],
        "key_id": key["id"],
        "tenant_id": str(house.member.id),
        "name": "gpt-4o",
    }


def _conversation(service: Service, mark: str, external_id: str) -> str:
    turns: list[Any] = []
    for n in range(TURNS):
        turns.append({"role": "user", "content": f"{n}. {mark} " + "word " * 150})
        turns.append({"role": "assistant", "content": f"{n}. {mark} " + "answer " * 150})
    tool = {"type": "function", "function": {"name": "look", "description": mark, "parameters": {"type": "object"}}}
    asked = {
        "model": "gpt-4o", "context_window": 16_000, "external_id": external_id, "system": mark, "tools": [tool],
        "metadata": {"mark": mark}, "policy": {"instructions": mark}, "messages": turns,
    }  # fmt: skip
    made = service.call("POST", "conversations", asked, status=201, **{"Idempotency-Key": external_id})
    return f"conversations/{made['id']}"


def anonymous(key: str | None) -> Client:
    """A client of the whole site, not of the API alone."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return Client(headers=headers, raise_request_exception=False)
