from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import Client


def _check(response: Any, status: int, kind: str, code: str, attr: str | None = None) -> Any:
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert {"type", "errors", "request_id"} <= set(body)
    assert (body["type"], [(e["code"], e["attr"]) for e in body["errors"]]) == (kind, [(code, attr)])
    assert body["request_id"] == response.headers["X-Request-Id"]
    return body


def test_api_error__raised__carries_code_attr_headers_and_extra(client: Client) -> None:
    response = client.get("/fail/business")
    body = _check(response, 409, "client_error", "position_conflict", "x")
    assert body["last_position"] == 4
    assert response.headers["Retry-After"] == "7"


def test_unexpected_exception__in_a_view__is_a_500_that_says_nothing_and_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    response = client.get("/fail/unexpected")
    _check(response, 500, "server_error", "internal_error")
    assert b"secret" not in response.content
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


@pytest.mark.parametrize("debug", [True, False])
def test_unexpected_exception__debug_or_not__same_answer(client: Client, settings: Any, debug: bool) -> None:
    settings.DEBUG = debug
    _check(client.get("/fail/unexpected"), 500, "server_error", "internal_error")


def test_database_away__in_a_view__is_a_503_to_retry(client: Client) -> None:
    response = client.get("/fail/database")
    _check(response, 503, "server_error", "service_unavailable")
    assert response.headers["Retry-After"] == "1"
    assert b"10.0.0.1" not in response.content


def test_value_the_database_refuses__in_a_view__is_a_400(client: Client) -> None:
    _check(client.get("/fail/unstorable"), 400, "client_error", "invalid")


def test_database_away__outside_views__is_a_503_to_retry(anonymous: Client) -> None:
    response = anonymous.get("/away")
    _check(response, 503, "server_error", "service_unavailable")
    assert response.headers["Retry-After"] == "1"


def test_unexpected_exception__outside_views__is_a_500_that_says_nothing(anonymous: Client) -> None:
    response = anonymous.get("/broken")
    _check(response, 500, "server_error", "internal_error")
    assert b"secret" not in response.content


def test_unknown_path__any__is_a_404(anonymous: Client) -> None:
    _check(anonymous.get("/no/such/path"), 404, "client_error", "not_found")


def test_key__missing__is_a_401_that_asks_for_one(anonymous: Client) -> None:
    response = anonymous.post("/work")
    _check(response, 401, "client_error", "not_authenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header", ["Bearer x", "Bearer ", "Bearer \x00", f"Bearer ck_{'0' * 12}_{'a' * 43}", "bearer é"]
)
def test_key__wrong__is_a_401(anonymous: Client, db: None, header: str) -> None:
    _check(anonymous.get("/work", headers={"Authorization": header}), 401, "client_error", "authentication_failed")


def test_key__of_another_scheme__is_a_401(anonymous: Client) -> None:
    _check(anonymous.get("/work", headers={"Authorization": "Basic eA=="}), 401, "client_error", "not_authenticated")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_method__not_of_the_view__is_a_405_that_lists_its_own(client: Client, method: str) -> None:
    response = client.generic(method, "/work")
    _check(response, 405, "client_error", "method_not_allowed")
    assert response.headers["Allow"] == "GET, POST, HEAD"


def test_method__not_of_a_health_page__is_a_405(anonymous: Client) -> None:
    _check(anonymous.post("/healthz"), 405, "client_error", "method_not_allowed")


def test_unknown_field__strict_serializer__is_named_beside_other_errors(client: Client) -> None:
    body = {"nope": 1, "made": "x", "number": "a", "child": {"name": "n", "other": 1}, "metadata": {"a": "\0"}}
    response = client.post("/strict", body, content_type="application/json")
    assert response.status_code == 400
    found = {(e["code"], e["attr"]) for e in response.json()["errors"]}
    assert found == {
        ("unknown_field", "nope"),
        ("read_only", "made"),
        ("invalid", "number"),
        ("unknown_field", "child.other"),
        ("unstorable", "metadata"),
    }


@pytest.mark.parametrize("body", ["[]", "1", '"x"', "null"])
def test_body__not_an_object__is_a_400(client: Client, body: str) -> None:
    response = client.post("/strict", body, content_type="application/json")
    assert response.status_code == 400


@pytest.mark.parametrize("metadata", ['{"a": [{"b": "\\ud800"}]}', '{"\\u0000": 1}', '"text"', "[1]"])
def test_storable_json__text_postgresql_refuses_or_no_object__is_a_400(client: Client, metadata: str) -> None:
    response = client.post("/strict", f'{{"metadata": {metadata}}}', content_type="application/json")
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (400, "metadata")
