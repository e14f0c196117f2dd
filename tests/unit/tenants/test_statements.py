"""Statements written once: the same rows as through the ORM, and never another tenant's."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from compaction_service.conversations.models import Conversation, Message
from tenants.scope import NoTenantInScope, WrongScope, tenant_scope
from tenants.statements import Delete, Insert, Select, Update

BY_ID = Select(Conversation, "id = %s")
ODD = {"nul": "\x00", "surrogate": "\ud800", "list": []}


def made(tenant: Any, **fields: Any) -> Conversation:
    with tenant_scope(tenant.id):
        return Conversation.objects.create(model="m", format="openai", tokenizer="o200k_base", **fields)


def message(row: Conversation, position: int) -> Message:
    return Message(
        conversation_id=row.id, tenant_id=row.tenant_id, position=position, role="user", body="{}", tokens=1, chars=2,
        digest=b"\x00\x01", created_at=timezone.now(), calls=[["a", "b"]], metadata={"k": [1]}, masked=[0, 2],
    )  # fmt: skip


def test_select__row_of_every_kind_of_column__is_what_the_orm_reads(tenant: Any) -> None:
    row = made(tenant, ledger=ODD, policy={"a": 1}, metadata={"b": [None]}, carried=[1, 2])
    with tenant_scope(tenant.id):
        (found,) = BY_ID.rows(row.id)
        expected = Conversation.objects.get(id=row.id)
    assert {**vars(found), "_state": 0} == {**vars(expected), "_state": 0}
    assert (found._state.adding, found._state.db) == (False, "default")


def test_select__names__gives_these_values_in_their_order(tenant: Any) -> None:
    row = made(tenant, ledger=ODD)
    with tenant_scope(tenant.id):
        assert Select(Conversation, "id = %s", names=("ledger", "id")).tuples(row.id) == [[ODD, row.id]]


def test_statements__row_of_a_stranger__is_out_of_reach(tenant: Any, stranger: Any) -> None:
    row = made(tenant)
    with tenant_scope(stranger.id):
        assert BY_ID.rows(row.id) == []
        assert Update(Conversation, ("model",), "id = %s").run(row, row.id) == 0
        assert Delete(Conversation, "id = %s").run(row.id) == 0
        with pytest.raises(WrongScope):
            Insert(Message).run([message(row, 1)])


def test_statements__no_tenant_in_scope__raise(tenant: Any) -> None:
    row = made(tenant)
    with pytest.raises(NoTenantInScope):
        BY_ID.rows(row.id)
    with pytest.raises(NoTenantInScope):
        Update(Conversation, ("model",), "id = %s").run(row, row.id)
    with pytest.raises(NoTenantInScope):
        Delete(Conversation, "id = %s").run(row.id)
    with pytest.raises(NoTenantInScope):
        Insert(Message).run([message(row, 1)])


def test_update__condition_that_does_not_hold__writes_nothing(tenant: Any) -> None:
    row = made(tenant)
    row.ledger, row.carried = ODD, [7]
    update = Update(Conversation, ("ledger", "carried"), "id = %s and revision = %s")
    with tenant_scope(tenant.id):
        assert update.run(row, row.id, 1) == 0
        assert update.run(row, row.id, 0) == 1
        read = Conversation.objects.get(id=row.id)
    assert (read.ledger, read.carried) == (ODD, [7])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_insert__any_number_of_rows__are_what_the_orm_reads(tenant: Any, count: int) -> None:
    row = made(tenant)
    with tenant_scope(tenant.id):
        Insert(Message).run([message(row, n + 1) for n in range(count)])
        read = list(Message.objects.filter(conversation_id=row.id).order_by("position"))
    assert [m.position for m in read] == list(range(1, count + 1))
    assert all(
        (m.calls, m.metadata, m.masked, bytes(m.digest)) == ([["a", "b"]], {"k": [1]}, [0, 2], b"\x00\x01")
        for m in read
    )


def test_delete__condition_holds_for_one__that_one_is_gone(tenant: Any) -> None:
    row, other = made(tenant), made(tenant)
    with tenant_scope(tenant.id):
        assert Delete(Conversation, "id = %s").run(row.id) == 1
        assert list(Conversation.objects.values_list("id", flat=True)) == [other.id]
