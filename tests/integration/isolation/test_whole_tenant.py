"""Export, deletion and new encryption of a tenant: all of it, and nothing of another's."""

from __future__ import annotations

import json
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from compaction_service.compactions import jobs, preparing
from compaction_service.usage import budgets
from tenants import crypto, selectors, services
from tenants.scope import platform_scope, tenant_scope
from tests.footprint import rows_of
from tests.inprocess import Service
from tests.integration.isolation.conftest import House, anonymous
from tests.model_server import Control
from tests.unit.compactions.test_jobs import CHAT

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
    assert len(out.getvalue().splitlines()) == len(lines) + 1  # the export by the command is told too


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


def test_delete__while_a_model_is_called__what_comes_late_is_not_written(
    service: Service, platform: Client, models: Control, model: str
) -> None:
    service.summarizer(models, models.script(model, "status:401"))  # what is noted of it, is noted in a row
    path = service.create(messages=CHAT)
    service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        one = jobs.begin(claim)
        assert one is not None
        step = preparing.step_of(one)
    assert step is not None
    result, _ = jobs._execute(claim, step)
    assert result.called
    tenant = f"/v1/admin/tenants/{service.tenant_id}"
    platform.patch(tenant, json.dumps({"status": "suspended"}), content_type="application/json")
    assert platform.delete(tenant).status_code == 200

    with tenant_scope(service.tenant_id):
        jobs.finish(claim, step, result)
        assert budgets.reserve(Decimal(1), Decimal(1), seconds=60) is None

    assert not any(rows_of(service.tenant_id).values())


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
