from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone
from rest_framework.response import Response

from compaction_service.api import idempotency
from compaction_service.api.errors import ApiError
from compaction_service.api.models import IdempotencyKey
from tenants.models import ApiKey
from tenants.scope import platform_scope, tenant_scope

MARK = b"m" * 32


def _post(client: Client, key: str, path: str = "/work", body: bytes = b"{}") -> Any:
    return client.post(path, body, content_type="application/json", headers={"Idempotency-Key": key})


def _code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["errors"][0]["code"]


def test_post__same_key_and_body__gives_the_stored_answer_and_works_once(client: Client, tenant: Any) -> None:
    first, second = _post(client, "k"), _post(client, "k")
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert (second.headers["Location"], second.headers["Idempotency-Replayed"]) == ("/here", "true")
    assert "Idempotency-Replayed" not in first.headers
    assert client.get("/work").json()["keys"] == 3


@pytest.mark.parametrize(("path", "body"), [("/work", b"{} "), ("/work?a=1", b"{}"), ("/echo", b"{}")])
def test_post__same_key_for_another_request__is_a_409(client: Client, path: str, body: bytes) -> None:
    _post(client, "k")
    assert _code(_post(client, "k", path, body)) == (409, "idempotency_conflict")


def test_post__same_key_of_another_tenant__is_its_own(client: Client, stranger: Any) -> None:
    _post(client, "k")
    other = Client(headers={"Authorization": f"Bearer {stranger.key}"})
    assert "Idempotency-Replayed" not in _post(other, "k").headers


@pytest.mark.parametrize(("end", "status"), [("raise", 422), ("refuse", 404)])
def test_post__refused__is_not_stored(client: Client, tenant: Any, end: str, status: int) -> None:
    assert _post(client, "k", f"/work?then={end}").status_code == status
    assert _post(client, "k").status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "é"])
def test_post__unusable_key__is_a_400(client: Client, key: str) -> None:
    response = _post(client, key)
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (400, "Idempotency-Key")


def test_get__key__is_ignored(client: Client, tenant: Any) -> None:
    client.get("/work", headers={"Idempotency-Key": "k"})
    with tenant_scope(tenant.id):
        assert not IdempotencyKey.objects.exists()


def test_post__body_over_the_limit__is_a_413(client: Client, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 10
    assert _post(client, "k", body=b'{"a": "12345"}').status_code == 413


def test_answer_once__two_at_once__one_works_and_the_other_is_told_to_wait(tenant: Any) -> None:
    inside, leave = Event(), Event()

    def work() -> Response:
        inside.set()
        assert leave.wait(10)
        return Response({"n": 1})

    def run() -> Response:
        try:
            with tenant_scope(tenant.id):
                return idempotency.answer_once("k", MARK, work)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run)
        assert inside.wait(10)
        with pytest.raises(ApiError) as raised, tenant_scope(tenant.id):
            idempotency.answer_once("k", MARK, lambda: pytest.fail("worked twice"))
        leave.set()
        assert first.result(10).status_code == 200
    assert (raised.value.status_code, raised.value.headers) == (409, {"Retry-After": "1"})
    with tenant_scope(tenant.id):
        assert idempotency.answer_once("k", MARK, lambda: pytest.fail("worked twice")).status_code == 200


def test_answer_once__answer_older_than_a_day__works_anew(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        idempotency.answer_once("k", MARK, lambda: Response({"n": 1}))
        IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
        idempotency.answer_once("k", b"o" * 32, lambda: Response({"n": 2}))
        assert IdempotencyKey.objects.get().body == '{"n":2}'


def test_answer_once__lone_surrogate_and_no_body__are_kept(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        for key, data in (("a", {"text": "\ud800\0"}), ("b", None)):
            first = idempotency.answer_once(key, MARK, lambda data=data: Response(data))  # type: ignore[misc]
            again = idempotency.answer_once(key, MARK, Response)
            assert getattr(first.data, "text", None) == getattr(again.data, "text", None)


def test_forget_conversation__its_answers__are_deleted(client: Client, tenant: Any) -> None:
    made = _post(client, "k").json()["id"]
    _post(client, "other", "/echo")
    with tenant_scope(tenant.id):
        assert idempotency.forget_conversation(made) == 1
        assert IdempotencyKey.objects.count() == 1


def test_purge__old_answers_of_all_tenants__are_deleted(tenant: Any, stranger: Any) -> None:
    for one in (tenant, stranger):
        with tenant_scope(one.id):
            idempotency.answer_once("old", MARK, lambda: Response({}))
            IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
            idempotency.answer_once("new", MARK, lambda: Response({}))
    with platform_scope():
        assert idempotency.purge() >= 2
    with tenant_scope(tenant.id):
        assert [row.key for row in IdempotencyKey.objects.all()] == ["new"]
        assert ApiKey.objects.count() == 2
