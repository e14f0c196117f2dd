from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from compaction_service.compactions.models import Compaction
from compaction_service.usage import services
from tenants.scope import tenant_scope
from tests.conftest import Member


@pytest.fixture
def client(tenant: Member) -> Client:
    """The API as the test's tenant sees it, in this process."""
    return Client(headers={"Authorization": f"Bearer {tenant.key}"}, raise_request_exception=False)


def _conversation(client: Client) -> str:
    body = {"model": "gpt-4o", "context_window": 4096}
    return str(client.post("/v1/conversations", body, content_type="application/json").json()["id"])


def _log(tenant: Member, conversation: str, outcome: str, seconds: float, **fields: Any) -> Compaction:
    status = "failed" if outcome in ("failed", "stale") else "cancelled" if outcome == "cancelled" else "succeeded"
    now = timezone.now()
    return Compaction.objects.create(
        conversation_id=UUID(conversation), status=status, outcome=outcome, trigger="manual", requested_by="test",
        strategy="sliding", policy={}, started_at=now - timedelta(seconds=seconds), finished_at=now, **fields,
    )  # fmt: skip


def _called(tenant: Member, compaction: Compaction, status: str, cost: str, tokens_in: int) -> None:
    services.call_record(
        tenant_id=tenant.id, conversation_id=compaction.conversation_id, compaction_id=compaction.id, pass_number=1,
        model="m", status=status, tokens_in=tokens_in, cost=Decimal(cost),
    )  # fmt: skip


def test_stats__no_compactions__are_zeros_and_nulls(client: Client) -> None:
    body = client.get(f"/v1/conversations/{_conversation(client)}/stats").json()
    assert (body["compactions"], body["tokens_in"], body["cost"]) == (0, 0, 0)
    assert body["outcomes"] == dict.fromkeys(["applied", "skipped", "irreducible", "failed", "cancelled", "stale"], 0)
    assert [body[name] for name in ("compression_ratio", "duration_ms", "oldest", "newest")] == [None] * 4


def test_stats__several_compactions__count_all_and_average_the_applied(client: Client, tenant: Member) -> None:
    conversation = _conversation(client)
    with tenant_scope(tenant.id):
        first = _log(tenant, conversation, "applied", 1, tokens_in=1000, tokens_out=100, entities=["a", "b"])
        _log(tenant, conversation, "applied", 3, tokens_in=400, tokens_out=100, entities=["b"],
             reverted_at=timezone.now())  # fmt: skip
        failed = _log(tenant, conversation, "failed", 60, tokens_in=9999)
        _called(tenant, first, "ok", "0.5", 7)
        _called(tenant, failed, "failed", "0.25", 5)
    body = client.get(f"/v1/conversations/{conversation}/stats").json()
    assert (body["compactions"], body["live"], body["reverted"]) == (3, 0, 1)
    assert (body["outcomes"]["applied"], body["outcomes"]["failed"]) == (2, 1)
    assert (body["tokens_in"], body["tokens_out"], body["compression_ratio"]) == (1400, 200, 7.0)
    assert (body["duration_ms"], body["cost"], body["llm_tokens_in"]) == (2000, 0.75, 12)
    assert body["entities"] == ["b", "a"]
    assert body["oldest"] < body["newest"]


def test_stats__of_another_tenant__are_not_found(client: Client, stranger: Member) -> None:
    theirs = Client(headers={"Authorization": f"Bearer {stranger.key}"})
    assert client.get(f"/v1/conversations/{_conversation(theirs)}/stats").status_code == 404
