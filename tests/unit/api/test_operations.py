"""Request ids, log lines, health, metrics and the OpenAPI document."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.test import Client

from compaction_service import checks, logs
from compaction_service.api import docs, health
from compaction_service.api.cache import client as redis_client


@pytest.mark.parametrize("given", ["abc-1", "A.b_c:9", "x" * 128])
def test_request_id__sane__is_taken(anonymous: Client, given: str) -> None:
    assert anonymous.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", 'a"b', "é", "a\nb"])
def test_request_id__missing_or_not_sane__is_made(anonymous: Client, given: str) -> None:
    made = anonymous.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"]
    assert made != given
    assert len(made) == 32


def test_request__answered__is_one_log_line_without_path_or_query(
    client: Client, tenant: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "compaction_service.request"):
        client.get("/fail/business?secret=1")
    lines = [json.loads(logs.JsonFormatter().format(r)) for r in caplog.records if r.msg == "request"]
    assert len(lines) == 1
    assert (lines[0]["route"], lines[0]["status"], lines[0]["tenant"]) == ("fail/<str:name>", 409, str(tenant.id))
    assert "secret" not in json.dumps(lines)


def test_log_line__exception_and_extra__is_one_json_line() -> None:
    token = logs.request_id.set("r-1")
    try:
        record = logging.makeLogRecord({"name": "n", "levelname": "ERROR", "msg": "%s\n{x}", "args": ("%d",), "job": 3})
        line = logs.JsonFormatter().format(record)
    finally:
        logs.request_id.reset(token)
    assert "\n" not in line
    assert json.loads(line) | {"time": ""} == {
        "time": "", "level": "error", "logger": "n", "message": "%d\n{x}", "request_id": "r-1", "job": 3,
    }  # fmt: skip


def test_healthz__nothing_asked__is_ok(anonymous: Client) -> None:
    assert anonymous.get("/healthz").json() == {"status": "ok"}


def test_readyz__everything_up__is_ok(anonymous: Client, db: None) -> None:
    response = anonymous.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok", "down": []})


def test_readyz__broker_and_cache_away__is_degraded_and_still_ready(anonymous: Client, db: None, settings: Any) -> None:
    settings.BROKER_URL = settings.CACHE_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    response = anonymous.get("/readyz")
    redis_client.cache_clear()
    assert (response.status_code, response.json()) == (200, {"status": "degraded", "down": ["broker", "cache"]})


def test_readyz__migration_pending__is_down(anonymous: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_files", lambda: frozenset({("tenants", "9999_later")}))
    response = anonymous.get("/readyz")
    assert (response.status_code, response.json()["down"]) == (503, ["migrations"])


def test_metrics__after_a_request__count_it_by_route(client: Client) -> None:
    client.get("/work")
    assert 'method="GET",route="work",status="200"' in client.get("/metrics").content.decode()


def test_schema__every_operation__has_a_name_a_summary_and_errors(anonymous: Client, settings: Any) -> None:
    settings.ROOT_URLCONF = "compaction_service.urls"
    docs.document.cache_clear()
    document = json.loads(docs.document())
    operations = [op for path in document["paths"].values() for op in path.values()]
    names = [op["operationId"] for op in operations]
    assert len(names) == len(set(names)) > 0
    for operation in operations:
        assert operation["summary"]
        for status in ("400", "401", "403", "405", "429", "500", "503"):
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Error"}


def test_docs__no_key__is_a_page_without_foreign_hosts(anonymous: Client, settings: Any) -> None:
    settings.ROOT_URLCONF = "compaction_service.urls"
    page = anonymous.get("/docs").content.decode()
    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page


@pytest.mark.parametrize("name", ["SECRET_KEY", "KEY_PEPPERS", "ENCRYPTION_KEYS", "BROKER_URL"])
def test_missing_settings__one_not_set__is_named(settings: Any, name: str) -> None:
    assert checks.missing_settings() == []
    if name == "SECRET_KEY":
        settings.SECRET_KEY_IS_EPHEMERAL = True
    else:
        setattr(settings, name, None)
    assert checks.missing_settings() == [name]
