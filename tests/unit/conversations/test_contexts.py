from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from compaction_service.conversations import contexts
from compaction_service.conversations.models import Conversation
from compaction_service.engine import fit as fitting
from tenants.scope import tenant_scope
from tests.inprocess import Service

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))
CHAT = [{"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")]
CALL = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def test_context__low_factor_and_a_result_cut_to_fit__tokens_are_within_window_minus_reserve(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[int] = []
    fit = fitting.fit

    def remember(*arguments: Any, budget: int, **options: Any) -> Any:
        budgets.append(budget)
        return fit(*arguments, budget=budget, **options)

    monkeypatch.setattr(fitting, "fit", remember)
    path = service.create(model="claude-3-5-sonnet-20241022", context_window=800, system="Be brief.")
    service.append(path, {"role": "user", "content": "Read it."})
    service.append(path, {"role": "assistant", "content": "Reading.", "tool_calls": [CALL]})
    service.append(path, {"role": "tool", "tool_call_id": "c", "content": TEXT * 3})
    with tenant_scope(service.tenant_id):
        Conversation.objects.filter(id=path.removeprefix("conversations/")).update(factor=0.33, calibrated=True)

    for reserve in range(10):
        context = service.context(path, reserve_output_tokens=str(reserve))
        assert context["degraded"]
        assert context["meter"]["tokens"] <= 800 - reserve
        # Each of the five parts may be rounded up by nearly a token.
        assert budgets[-1] * 0.33 + len(context["meter"]["breakdown"]) <= 800 - reserve


def test_context_etag__the_tenants_preset_changes_how_summaries_are_shown__changes_too(service: Service) -> None:
    path = service.create()
    service.append(path, *CHAT)
    service.compact(path)
    tag = service.client.get(f"/v1/{path}/context")["ETag"]

    service.patch("tenant", {"policy": {"preset": "three_layer"}})
    again = service.client.get(f"/v1/{path}/context", headers={"If-None-Match": tag})

    assert again.status_code == 200


@pytest.mark.parametrize("keyed", [False, True])
def test_context__long_or_short__is_made_after_its_transaction(
    service: Service, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    """Its work holds no row; only with an Idempotency-Key it is part of the stored answer, written with it."""
    inside: list[bool] = []
    real = contexts.context_read

    def noted(*arguments: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return real(*arguments)

    monkeypatch.setattr(contexts, "context_read", noted)
    path = service.create()
    headers: dict[str, Any] = {"Idempotency-Key": "a key"} if keyed else {}
    given = {"messages": [{"role": "user", "content": "Hi."}], "return_context": True}
    answer = service.post(f"{path}/messages", given, **headers)
    read = service.context(path)
    assert inside == [keyed, False]
    assert answer["context"] == read
