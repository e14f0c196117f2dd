"""What a tenant may store and ask: refused whole, with what was exceeded and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from compaction_service.conversations import quota
from tenants import services
from tenants.scope import platform_scope
from tests.conftest import Member
from tests.fuzz.world import digest
from tests.inprocess import Service

Limit = Callable[..., None]
HELLO = {"role": "user", "content": "hello there"}


@pytest.fixture
def limit(service: Service) -> Limit:
    """Sets limits of the test's tenant."""

    def set_limits(**limits: Any) -> None:
        with platform_scope():
            services.tenant_set_limits(service.tenant_id, limits)

    return set_limits


def _refused(service: Service, path: str, body: Any, status: int, code: str) -> Any:
    """The answer's `limit`, after checking that nothing was stored."""
    before = digest(service.tenant_id)
    told = service.post(path, body, status=status)
    assert (told["errors"][0]["code"], told["errors"][0]["detail"] != "") == (code, True)
    assert digest(service.tenant_id) == before
    return told["limit"]


def test_conversations__as_many_as_allowed__one_more_is_a_403_until_one_is_erased(
    service: Service, limit: Limit
) -> None:
    limit(conversations=2)
    path = service.create(messages=[HELLO])
    service.create()
    told = _refused(service, "conversations", {"model": "gpt-4o"}, 403, "limit_reached")
    assert told == {"name": "conversations", "most": 2, "ends_at": None}
    assert _refused(service, f"{path}/fork", {"position": 1}, 403, "limit_reached")["name"] == "conversations"
    service.append(path, HELLO)  # what is there goes on
    assert service.get("tenant")["usage"]["conversations"] == 2
    service.call("DELETE", path)
    service.create()


def test_conversations__made_at_once__are_never_more_than_allowed(
    service: Service, limit: Limit, tenant: Member
) -> None:
    limit(conversations=3)

    def one(_: int) -> int:
        client = Client(headers={"Authorization": f"Bearer {tenant.key}"})
        try:
            made = client.post("/v1/conversations", json.dumps({"model": "gpt-4o"}), content_type="application/json")
            return made.status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(one, range(12)))
    assert statuses == [201] * 3 + [403] * 9


def test_stored_tokens__used_up__appends_are_a_403_until_messages_are_erased(
    service: Service, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service.create(messages=[HELLO])
    used = service.get("tenant")["usage"]["stored_tokens"]
    limit(stored_tokens=2 * used)
    service.append(path, HELLO)
    told = _refused(service, f"{path}/messages", {"messages": [HELLO]}, 403, "limit_reached")
    assert told == {"name": "stored_tokens", "most": 2 * used, "ends_at": None}
    new = {"model": "gpt-4o", "messages": [HELLO]}
    assert _refused(service, "conversations", new, 403, "limit_reached")["name"] == "stored_tokens"
    assert _refused(service, f"{path}/fork", {"position": 1}, 403, "limit_reached")["name"] == "stored_tokens"
    assert service.context(path)["fits"]  # reading goes on
    service.call("DELETE", f"{path}/messages/1")
    service.append(path, HELLO)


def test_stored_tokens__of_another_tenant__do_not_count(
    service: Service, limit: Limit, make_tenant: Callable[[], Member]
) -> None:
    quota._sums.clear()
    other = make_tenant()
    for member in (other, service):
        with platform_scope():
            services.tenant_set_limits(getattr(member, "tenant_id", other.id), {"stored_tokens": 1000})
    full = {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 900}]}
    client = Client(headers={"Authorization": f"Bearer {other.key}"})
    body = json.dumps(full)
    assert client.post("/v1/conversations", body, content_type="application/json").status_code == 201
    assert client.post("/v1/conversations", body, content_type="application/json").status_code == 403
    service.post("conversations", full)


def test_message__over_its_own_limit__is_a_413_that_names_it(service: Service, limit: Limit) -> None:
    limit(max_message_bytes=1000)
    path = service.create()
    long = {"role": "user", "content": "\u00fc" * 490}  # 980 bytes, and what is around it
    told = _refused(service, f"{path}/messages", {"messages": [HELLO, long]}, 413, "message_too_large")
    assert told == {"name": "max_message_bytes", "most": 1000, "ends_at": None}
    refused = service.post(f"{path}/messages", {"messages": [long]}, status=413)["errors"][0]
    assert refused["detail"] == "The message has 1008 bytes as compact JSON; it may have 1000."
    service.append(path, {"role": "user", "content": "u" * 900})


def test_body__over_the_tenants_limit__says_so(service: Service, limit: Limit) -> None:
    limit(max_body_bytes=2000)
    told = _refused(service, "conversations", {"model": "gpt-4o", "system": "x" * 3000}, 413, "request_too_large")
    assert told == {"name": "max_body_bytes", "most": 2000, "ends_at": None}


def test_requests__minute_used_up__says_when_it_ends(service: Service, limit: Limit) -> None:
    limit(requests_per_minute=2)
    told = next(one for one in (service.get("tenant", status=None) for _ in range(9)) if "limit" in one)
    assert (told["errors"][0]["code"], told["limit"]["name"], told["limit"]["most"]) == (
        "throttled", "requests_per_minute", 2,
    )  # fmt: skip
    ends = datetime.fromisoformat(told["limit"]["ends_at"]) - timezone.now()
    assert timedelta(0) < ends <= timedelta(seconds=61)
