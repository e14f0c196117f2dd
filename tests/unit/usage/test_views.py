from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from compaction_service.usage import services
from compaction_service.usage.models import Call, Day
from tenants.scope import tenant_scope
from tests.conftest import Member

TODAY = datetime.now(UTC).date()


@pytest.fixture
def client(tenant: Member) -> Client:
    """The API as the test's tenant sees it, in this process."""
    return Client(headers={"Authorization": f"Bearer {tenant.read_key}"}, raise_request_exception=False)


def _conversation(tenant: Member, messages: int = 2) -> str:
    writer = Client(headers={"Authorization": f"Bearer {tenant.key}"})
    body = {
        "model": "gpt-4o",
        "context_window": 4096,
        "messages": [{"role": "user", "content": "hello there"}] * messages,
    }
    return str(writer.post("/v1/conversations", body, content_type="application/json").json()["id"])


def _called(tenant: Member, conversation: str, model: str, cost: str) -> None:
    with tenant_scope(tenant.id):
        services.call_record(
            tenant_id=tenant.id, conversation_id=UUID(conversation), compaction_id=uuid4(), pass_number=1, model=model,
            status="ok", tokens_in=100, tokens_out=10, cost=Decimal(cost),
        )  # fmt: skip


def _compacted(tenant: Member, conversation: str) -> None:
    with tenant_scope(tenant.id):
        services.compaction_record(
            tenant_id=tenant.id, conversation_id=UUID(conversation), model="gpt-4o", outcome="applied", tokens_saved=420
        )  # fmt: skip


def _get(client: Client, **params: Any) -> Any:
    response = client.get("/v1/usage", params)
    assert response.status_code == 200, response.content
    return response.json()


def test_usage__nothing_used__is_an_empty_page_of_thirty_days(client: Client) -> None:
    body = _get(client)
    assert (body["data"], body["next_cursor"], body["group_by"]) == ([], None, "day")
    assert date.fromisoformat(body["to"]) - date.fromisoformat(body["from"]) == timedelta(days=29)


def test_usage__by_day__adds_up_messages_compactions_and_calls(client: Client, tenant: Member) -> None:
    conversation = _conversation(tenant)
    _called(tenant, conversation, "summarizer-1", "0.25")
    _called(tenant, conversation, "summarizer-1", "0.5")
    _compacted(tenant, conversation)
    [row] = _get(client)["data"]
    assert (row["key"], row["messages"], row["tokens_saved"]) == (TODAY.isoformat(), 2, 420)
    assert (row["llm_tokens_in"], row["llm_tokens_out"], row["cost"]) == (200, 20, 0.75)
    assert (row["compactions"]["applied"], row["compactions"]["failed"]) == (1, 0)
    assert (row["calls"], row["tokens"] > 0) == (2, True)


def test_usage__erased_conversation__keeps_what_it_cost_and_saved(client: Client, tenant: Member) -> None:
    conversation = _conversation(tenant)
    _called(tenant, conversation, "summarizer-1", "0.25")
    _compacted(tenant, conversation)
    before = _get(client)["data"]
    writer = Client(headers={"Authorization": f"Bearer {tenant.key}"})
    assert writer.delete(f"/v1/conversations/{conversation}").status_code == 200
    assert _get(client)["data"] == before
    with tenant_scope(tenant.id):
        assert Call.objects.filter(conversation_id=conversation).count() == 1


def test_usage__by_model__tells_the_agents_model_from_the_summarizers(client: Client, tenant: Member) -> None:
    conversation = _conversation(tenant)
    _called(tenant, conversation, "summarizer-1", "1")
    _compacted(tenant, conversation)
    rows = {row["key"]: row for row in _get(client, group_by="model")["data"]}
    assert set(rows) == {"gpt-4o", "summarizer-1"}
    assert (rows["gpt-4o"]["messages"], rows["gpt-4o"]["compactions"]["applied"], rows["gpt-4o"]["cost"]) == (2, 1, 0)
    assert (rows["summarizer-1"]["messages"], rows["summarizer-1"]["cost"]) == (0, 1)


def test_usage__by_conversation__pages_through_all_once(client: Client, tenant: Member) -> None:
    expected = sorted(_conversation(tenant, messages) for messages in (1, 2, 3))
    seen: list[str] = []
    params: dict[str, Any] = {"group_by": "conversation", "limit": 2}
    while True:
        body = _get(client, **params)
        seen += [row["key"] for row in body["data"]]
        if body["next_cursor"] is None:
            break
        params["cursor"] = body["next_cursor"]
    assert seen == expected


def test_usage__range__includes_both_ends_and_nothing_else(client: Client, tenant: Member) -> None:
    with tenant_scope(tenant.id):
        for day in range(1, 6):
            Day.objects.create(conversation_id=uuid4(), day=date(2026, 1, day), model="m", messages=day, tokens=1)
    body = _get(client, **{"from": "2026-01-02", "to": "2026-01-04"})
    assert [(row["key"], row["messages"]) for row in body["data"]] == [
        ("2026-01-02", 2), ("2026-01-03", 3), ("2026-01-04", 4),
    ]  # fmt: skip


def test_usage__of_another_tenant__is_not_seen(client: Client, stranger: Member) -> None:
    _called(stranger, _conversation(stranger), "m", "1")
    assert _get(client)["data"] == []


@pytest.mark.parametrize(
    ("params", "attr"),
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-13-01"}, "to"),
        ({"to": "20260101"}, "to"),
        ({"to": "9999-12-31"}, "to"),
        ({"from": "2026-02-01", "to": "2026-01-01"}, "from"),
        ({"from": "2020-01-01", "to": "2026-01-01"}, "from"),
        ({"group_by": "week"}, "group_by"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "eA"}, "cursor"),
        ({"to": "0001-01-01"}, "to"),
    ],
)
def test_usage__bad_parameter__is_a_400_that_names_it(client: Client, params: Any, attr: str) -> None:
    response = client.get("/v1/usage", params)
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (400, attr)
