"""The service inside the test's process: real HTTP views, real database, the worker's code without Celery.

Time is a clock of its own, years ahead: a worker process of the `live` stack, which shares the database, finds none of
this work due, and a test reaches a retry or the end of a lease by moving the clock instead of waiting.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from compaction_service.compactions import claims, following, jobs, requests
from compaction_service.compactions import clock as queue_clock
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.models import Compaction, Work
from compaction_service.conversations import recounts
from compaction_service.llm import client
from compaction_service.usage.models import Call
from tenants.scope import tenant_scope
from tests.model_server import Control, running

AHEAD = timedelta(days=3650)
MOST_PASSES = 200  # of one `work_off`; more is an endless loop


class Clock:
    """Time as work is scheduled by. The fixture `clock` sets the queue's by it."""

    def __init__(self) -> None:
        self.ahead = AHEAD
        self.sets = False

    def now(self) -> datetime:
        return timezone.now() + self.ahead

    def forward(self, by: timedelta) -> None:
        self.ahead += by
        if self.sets:
            queue_clock.AHEAD = self.ahead


@dataclass
class Service:
    """The API as one tenant sees it, and the worker. Every call asserts the status it expects."""

    tenant_id: uuid.UUID
    client: Client
    clock: Clock
    passes: int = field(default=0)  # run so far

    def call(self, method: str, path: str, body: Any = None, *, status: int | None = 200, **headers: str) -> Any:
        """The answer's JSON (None for one without), after a check of its status; `status=None`: whatever it is."""
        data = "" if body is None else json.dumps(body)
        response = self.client.generic(method, f"/v1/{path}", data, content_type="application/json", headers=headers)
        if status is not None:
            assert response.status_code == status, (response.status_code, response.content[:2000])
        return json.loads(response.content) if response.content else None

    def get(self, path: str, *, status: int | None = 200) -> Any:
        return self.call("GET", path, status=status)

    def post(self, path: str, body: Any = None, *, status: int | None = 201, **headers: str) -> Any:
        return self.call("POST", path, {} if body is None else body, status=status, **headers)

    def patch(self, path: str, body: Any, *, status: int | None = 200) -> Any:
        return self.call("PATCH", path, body, status=status)

    def create(self, **fields: Any) -> str:
        """A conversation; its path below /v1."""
        made = self.post("conversations", {"model": "gpt-4o", "context_window": 8000, **fields})
        return f"conversations/{made['id']}"

    def append(self, path: str, *messages: Any, **fields: Any) -> Any:
        return self.post(f"{path}/messages", {"messages": list(messages), **fields})

    def context(self, path: str, **params: str) -> Any:
        query = "&".join(f"{name}={value}" for name, value in params.items())
        return self.get(f"{path}/context" + (f"?{query}" if query else ""))

    def compact(self, path: str, **fields: Any) -> Any:
        """Ask for a compaction, let it end, and read its log entry."""
        asked = self.post(f"{path}/compactions", fields, status=None)
        self.work_off()
        return self.get(f"compactions/{asked['id']}")

    def compactions(self, path: str) -> list[Any]:
        """The log, oldest first."""
        found: list[Any] = self.get(f"compactions?limit=250&conversation={path.removeprefix('conversations/')}")["data"]
        return found[::-1]

    def summarizer(self, server: Control, model: str, *fallbacks: str) -> None:
        """Summaries by a model of the scripted server."""
        given = {"model": model, "fallback_models": list(fallbacks), "api_base": server.base_url, "api_key": server.key}
        self.patch("tenant", {"summarizer": given})

    def no_summarizer(self) -> None:
        self.patch("tenant", {"summarizer": {"model": None, "fallback_models": None}})

    def claim(self) -> Claim | None:
        """The tenant's next due pass as a worker would take it."""
        while (claim := claims.claim()) is not None and claim.tenant_id != self.tenant_id:
            park(claim.compaction_id)  # of a test before, whose work a worker of the `live` stack has gone on with
        return claim

    def work_off(self, *, wait: bool = True) -> int:
        """Run passes until none is left; the number run. `wait`: move the clock to what is scheduled for later."""
        for number in range(MOST_PASSES):
            claim = self.claim()
            if claim is None and wait and (later := self._next_due()):
                self.clock.forward(later)
                claim = self.claim()
            if claim is None:
                self.passes += number
                return number
            jobs.run(claim)
        raise AssertionError(f"still working after {MOST_PASSES} passes")

    def _next_due(self) -> timedelta | None:
        due = Work.objects.filter(tenant_id=self.tenant_id).order_by("next_at").values_list("next_at", flat=True)
        return None if (first := due.first()) is None else max(timedelta(0), first - self.clock.now())

    def calls(self, compaction_id: str) -> list[Call]:
        """The ledger of a compaction, oldest first."""
        with tenant_scope(self.tenant_id):
            return list(Call.objects.filter(compaction_id=compaction_id).order_by("id"))

    def row(self, compaction_id: str) -> Compaction:
        with tenant_scope(self.tenant_id):
            return Compaction.objects.get(id=compaction_id)


def service_of(member: Any, clock: Clock) -> Service:
    return Service(
        member.id, Client(headers={"Authorization": f"Bearer {member.key}"}, raise_request_exception=False), clock
    )


def park(compaction_id: uuid.UUID | None = None) -> None:
    """Put queued work, one row or all there is, where no clock of a test comes to."""
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "update compactions_work set next_at = '2200-01-01Z', lease_until = null, fence = null"
            " where %s::uuid is null or compaction_id = %s",
            [compaction_id, compaction_id],
        )
        if compaction_id is None:
            cursor.execute("update conversations_recount set next_at = '2200-01-01Z'")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, db: None) -> Clock:
    """Time as work is scheduled by; see above. What other tests left queued is parked."""
    park()
    made = Clock()
    monkeypatch.setattr(queue_clock, "AHEAD", made.ahead)
    made.sets = True
    # Nobody listens: a wake-up would only reach the worker of the `live` stack.
    monkeypatch.setattr(requests, "wake", lambda: None)
    for sender in (jobs, following):
        monkeypatch.setattr(sender, "wake", lambda: None)
    monkeypatch.setattr(recounts, "wake", lambda **_: None)
    return made


@pytest.fixture
def service(tenant: Any, clock: Clock) -> Iterator[Service]:
    """The service in this process, as the test's tenant sees it."""
    yield service_of(tenant, clock)
    with connections["default"].cursor() as cursor:
        cursor.execute("delete from compactions_work where tenant_id = %s", [tenant.id])
        cursor.execute("delete from conversations_recount where tenant_id = %s", [tenant.id])


@pytest.fixture(scope="session")
def models() -> Iterator[Control]:
    """The scripted model server. litellm is imported before, as in a worker: it takes longer than retries wait."""
    client.preload()
    with running() as control:
        yield control


@pytest.fixture
def model(models: Control) -> str:
    """A model name no other test uses; nobody scripted it yet, so it answers honestly."""
    return f"scripted-{uuid.uuid4().hex}"
