from __future__ import annotations

from typing import Any

import pytest

from compaction_service.conversations import services
from compaction_service.conversations.models import Message
from compaction_service.usage.models import Day
from tenants.scope import platform_scope, tenant_scope
from tests.inprocess import Service

HELLO = {"role": "user", "content": "Hello."}


@pytest.mark.parametrize("where", ["create", "update"])
def test_policy__an_unknown_field_with_null__is_refused_by_its_name(service: Service, where: str) -> None:
    policy: dict[str, Any] = {"treshold": None}
    if where == "create":
        answer = service.post("conversations", {"model": "gpt-4o", "policy": policy}, status=400)
    else:
        answer = service.patch(service.create(), {"policy": policy}, status=400)

    assert answer["errors"][0]["attr"] == "policy.treshold"


def test_append__the_tenants_reserve_is_larger_than_this_window__is_stored(service: Service) -> None:
    path = service.create(context_window=8000)

    service.patch("tenant", {"policy": {"reserve_output_tokens": 100_000}})

    service.append(path, HELLO)
    row = service.get("conversations")["data"][0]
    assert row["policy_sources"]["reserve_output_tokens"] == "default"
    assert service.context(path)["fits"]


def test_update__a_reserve_of_its_own_larger_than_the_window__is_refused(service: Service) -> None:
    answer = service.patch(service.create(), {"policy": {"reserve_output_tokens": 100_000}}, status=400)

    assert answer["errors"][0]["attr"] == "policy.reserve_output_tokens"


def test_erase__under_the_platform_role__takes_the_messages_too(service: Service) -> None:
    path = service.create()
    service.append(path, HELLO)
    conversation_id = path.removeprefix("conversations/")

    with platform_scope(), tenant_scope(service.tenant_id):
        receipt = services.conversation_erase(ref=conversation_id)

    assert receipt["counts"]["messages"] == 1
    with tenant_scope(service.tenant_id):
        assert not Message.objects.filter(conversation_id=conversation_id).exists()


def test_erase__receipt__counts_only_what_is_gone(service: Service) -> None:
    path = service.create()
    service.append(path, HELLO)

    receipt = service.call("DELETE", path)

    with tenant_scope(service.tenant_id):
        assert Day.objects.exists()
    assert set(receipt["counts"]) == {
        "messages",
        "summaries",
        "compactions",
        "queued_work",
        "idempotency_answers",
    }


def test_compaction_request__a_key_with_the_longest_name__is_queued(service: Service) -> None:
    key = service.post("api-keys", {"name": "n" * 200, "scopes": ["write"]})
    path = service.create()
    service.append(path, *({"role": role, "content": "word " * 300} for role in ("user", "assistant") * 2))

    asked = service.post(f"{path}/compactions", status=202, Authorization=f"Bearer {key['key']}")

    assert asked["requested_by"].startswith("key:nnn")
