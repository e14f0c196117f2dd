"""Export, deletion and new encryption of a tenant: all of it, and nothing of another's."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from tenants import crypto, selectors, services
from tenants.scope import platform_scope, tenant_scope
from tests.footprint import rows_of
from tests.inprocess import Service
from tests.integration.isolation.conftest import House, anonymous

NOT_GIVEN = {"api_idempotency", "compactions_work", "conversations_recount"}


@pytest.fixture
def platform(db: None) -> Client:
    with platform_scope():
        return anonymous(services.platform_key_create("test"))


def test_export__furnished_tenant__has_every_row_and_no_secret(
    house: House, burglar: Service, platform: Client
) -> None:
    burglar.create()
    before = rows_of(house.member.id)
    answer = platform.get(f"/v1/admin/tenants/{house.member.id}/export")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]  # it streams
    lines = [json.loads(line) for line in text.splitlines()]
    given: dict[str, int] = {}
    for line in lines:
        given[line["table"]] = given.get(line["table"], 0) + 1
    counts = {name: len(rows) for name, rows in before.items() if name not in NOT_GIVEN}
    counts["tenants_auditevent"] += 1  # the export itself
    assert given == counts
    assert house.mark in text
    assert str(burglar.tenant_id) not in text
    assert house.member.key not in text
    assert not any({"digest", "summarizer_key", "pepper"} & set(line["row"]) - {"pepper"} for line in lines)
    out = StringIO()
    call_command("export_tenant", str(house.member.id), stdout=out)
    assert len(out.getvalue().splitlines()) == len(lines)


def test_delete__suspended__is_gone_from_every_table(house: House, burglar: Service, platform: Client) -> None:
    burglar.create()
    others = rows_of(burglar.tenant_id)
    before = {name: len(rows) for name, rows in rows_of(house.member.id).items()}
    path = f"/v1/admin/tenants/{house.member.id}"
    assert platform.delete(path).json()["errors"][0]["code"] == "tenant_active"
    platform.patch(path, json.dumps({"status": "suspended"}), content_type="application/json")
    receipt: Any = platform.delete(path).json()
    before["tenants_auditevent"] += 1  # the suspension
    assert receipt["counts"] == before
    assert not any(rows_of(house.member.id).values())
    assert rows_of(burglar.tenant_id) == others
    assert platform.delete(path).status_code == 404
    assert house.service.get("tenant", status=401)


def test_reencrypt__new_key_first__old_one_is_not_needed_any_more(house: House, settings: Any) -> None:
    with tenant_scope(house.member.id):
        secret = selectors.summarizer_secret(selectors.tenant_get())
    old, new = settings.ENCRYPTION_KEYS[0], Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [new, *settings.ENCRYPTION_KEYS]
    call_command("reencrypt", stdout=StringIO())
    settings.ENCRYPTION_KEYS = [new]
    with tenant_scope(house.member.id):
        assert selectors.summarizer_secret(selectors.tenant_get()) == secret
    settings.ENCRYPTION_KEYS = [old, new]
    call_command("reencrypt", stdout=StringIO())  # back, for the tests that follow
    assert crypto.decrypt(crypto.encrypt("x")) == "x"
