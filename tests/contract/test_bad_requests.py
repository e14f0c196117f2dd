"""Bad requests over HTTP, in this process: the documented error each time, and nothing stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.test import Client
from django.utils import timezone
from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StrictSerializer
from compaction_service.conversations.serializers import ConversationOut, ConversationPatch, MessageOut, MessagePatch
from tenants import services
from tenants.models import ApiKey, Scope
from tenants.scope import TenantModel, platform_scope, tenant_scope
from tenants.serializers import TenantChangeSerializer, TenantSerializer
from tests.conftest import Member
from tests.contract.document import check_answer, operation

JSON = "application/json"
CALLING: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
USER = {"role": "user", "content": "hello"}


def _client(key: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)


@pytest.fixture
def client(tenant: Member) -> Client:
    """The API as the test's tenant sees it."""
    return _client(tenant.key)


@pytest.fixture
def ref(client: Client) -> str:
    """A conversation with one exchange whose call has its result, and one open call."""
    called = {**CALLING, "tool_calls": [{**CALLING["tool_calls"][0], "id": "open"}]}
    body = {"model": "gpt-4o", "context_window": 4096, "messages": [USER, CALLING, RESULT, USER, called]}
    return str(client.post("/v1/conversations", body, content_type=JSON).json()["id"])


def _rows(tenant: Member) -> dict[str, int]:
    """Rows of the tenant in every table it has."""
    with tenant_scope(tenant.id):
        models = [model for model in apps.get_models() if issubclass(model, TenantModel)]
        return {model._meta.label: model.objects.count() for model in models}


@contextmanager
def nothing_stored(tenant: Member) -> Iterator[None]:
    """Fails if any table of the tenant has more or fewer rows afterwards."""
    before = _rows(tenant)
    yield
    assert _rows(tenant) == before


def _refused(response: Any, operation_id: str, status: int, code: str | None = None, attr: str | None = None) -> Any:
    """The answer's body, after checking it against the document and what is expected."""
    assert response.status_code == status, response.content
    body = response.json()
    check_answer(operation(operation_id), status, body)
    assert body["request_id"] == response.headers["X-Request-Id"]
    error = body["errors"][0]
    assert (code in (None, error["code"]), attr in (None, error["attr"])) == (True, True), error
    return body


DEEP = "[" * 201 + "]" * 201
BODIES: list[tuple[str, int, str, str | None]] = [
    ('{"messages": [', 400, "parse_error", None),
    ("", 400, "required", "messages"),
    ("[]", 400, "invalid", None),
    ("null", 400, "null", None),
    ('{"messages": NaN}', 400, "parse_error", None),
    ('{"messages": [{"role": "user", "content": "x", "n": Infinity}]}', 400, "parse_error", None),
    ('{"messages": [{"role": "user", "content": "x", "n": 1e999}]}', 400, "parse_error", None),
    (f'{{"messages": [{{"role": "user", "content": "x", "n": {DEEP}}}]}}', 400, "parse_error", None),
    ('{"messages": [], "context_version": "\ud800"}', 400, "parse_error", None),
    ('{"messages": {}}', 400, "not_a_list", "messages"),
    ('{"messages": ["hello"]}', 400, "not_object", "messages.0"),
    ('{"messages": [], "expected_last_position": 1.5}', 400, "invalid", "expected_last_position"),
    ('{"messages": [], "expected_last_position": 123456789012345678901234567890}', 400, "max_value", None),
    ('{"messages": [], "expected_last_position": -1}', 400, "min_value", "expected_last_position"),
    ('{"messages": [], "return_context": "perhaps"}', 400, "invalid", "return_context"),
    ('{"messages": [], "usage": 7}', 400, "not_object", "usage"),
    ('{"messages": [], "details": [{}]}', 400, "length_mismatch", "details"),
    ('{"messages": [], "colour": "red"}', 400, "unknown_field", "colour"),
]


@pytest.mark.parametrize(("body", "status", "code", "attr"), BODIES)
def test_append__body_that_cannot_be_read__is_refused(
    client: Client, tenant: Member, ref: str, body: str, status: int, code: str, attr: str | None
) -> None:
    with nothing_stored(tenant):
        raw = body.encode(errors="surrogatepass")
        response = client.post(f"/v1/conversations/{ref}/messages", raw, content_type=JSON)
        _refused(response, "messages_append", status, code, attr)


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_append__another_content_type__is_a_415(client: Client, tenant: Member, ref: str, content_type: str) -> None:
    with nothing_stored(tenant):
        response = client.post(f"/v1/conversations/{ref}/messages", b'{"messages": []}', content_type=content_type)
        _refused(response, "messages_append", 415, "unsupported_media_type")


MESSAGES: list[tuple[list[Any], str | None, str]] = [
    ([{"role": "wizard", "content": "x"}], None, "messages.0.role"),
    ([{"content": "x"}], None, "messages.0.role"),
    ([{"role": 7, "content": "x"}], None, "messages.0.role"),
    ([{"role": "user"}], None, "messages.0.content"),
    ([USER, {"role": "user", "content": 5}], None, "messages.1.content"),
    ([{**RESULT, "tool_call_id": "nobody"}], "tool_result_without_call", "messages.0.tool_call_id"),
    ([RESULT], "tool_result_without_call", "messages.0.tool_call_id"),
    ([CALLING, RESULT, RESULT], "tool_result_duplicate", "messages.2.tool_call_id"),
    ([USER, {**CALLING, "tool_calls": CALLING["tool_calls"] * 2}], None, "messages.1.tool_calls.1.id"),
    ([USER, {**CALLING, "tool_calls": []}], None, "messages.1.tool_calls"),
    ([{"role": "assistant", "content": "go on"}, {**RESULT, "tool_call_id": "open"}], "call_abandoned",
     "messages.1.tool_call_id"),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "code", "attr"), MESSAGES)
def test_append__messages_no_provider_takes__is_refused_whole(
    client: Client, tenant: Member, ref: str, messages: list[Any], code: str | None, attr: str
) -> None:
    with nothing_stored(tenant):
        response = client.post(f"/v1/conversations/{ref}/messages", {"messages": messages}, content_type=JSON)
        _refused(response, "messages_append", 400, code, attr)
    assert client.get(f"/v1/conversations/{ref}").json()["last_position"] == 5


CREATIONS: list[tuple[dict[str, Any], str | None, str]] = [
    ({}, "required", "model"),
    ({"model": "gtp-4o"}, "model_unknown", "model"),
    ({"model": ""}, "blank", "model"),
    ({"model": "x" * 300}, "max_length", "model"),
    ({"model": "a\0b"}, None, "model"),
    ({"model": "gpt-4o", "format": "gemini"}, "invalid_choice", "format"),
    ({"model": "gpt-4o", "policy": {"threshold": 2}}, "invalid", "policy.threshold"),
    ({"model": "gpt-4o", "policy": {"treshold": 0.5}}, "unknown_field", "policy.treshold"),
    ({"model": "gpt-4o", "policy": {"reserve_output_tokens": 10**9}}, "invalid", "policy.reserve_output_tokens"),
    ({"model": "gpt-4o", "context_window": 0}, "min_value", "context_window"),
    ({"model": "gpt-4o", "context_window": 10**40}, None, "context_window"),
    ({"model": "gpt-4o", "metadata": []}, "not_object", "metadata"),
    ({"model": "gpt-4o", "metadata": {"a": "\0"}}, "unstorable", "metadata"),
    ({"model": "gpt-4o", "external_id": "x" * 256}, "max_length", "external_id"),
    ({"model": "gpt-4o", "external_id": ""}, "blank", "external_id"),
    ({"model": "gpt-4o", "id": "mine"}, "unknown_field", "id"),
    ({"model": "gpt-4o", "system": 5}, None, "system"),
    ({"model": "gpt-4o", "tools": {}}, None, "tools"),
    ({"model": "gpt-4o", "tools": [{"type": "function"}]}, None, "tools.0.function"),
    ({"model": "gpt-4o", "messages": [USER, RESULT]}, "tool_result_without_call", "messages.1.tool_call_id"),
    ({"model": "gpt-4o", "system": "a", "messages": [{"role": "system", "content": "b"}]}, "system_given_twice",
     "messages.0.role"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "attr"), CREATIONS)
def test_create__bad_field__is_a_400_that_names_it(
    client: Client, tenant: Member, body: dict[str, Any], code: str | None, attr: str
) -> None:
    with nothing_stored(tenant):
        _refused(client.post("/v1/conversations", body, content_type=JSON), "conversations_create", 400, code, attr)


def test_create__unknown_model__names_the_nearest(client: Client) -> None:
    response = client.post("/v1/conversations", {"model": "gtp-4o"}, content_type=JSON)
    assert "gpt-4o" in response.json()["nearest"]


def test_create__external_id_taken__is_a_409(client: Client, tenant: Member) -> None:
    body = {"model": "gpt-4o", "external_id": "mine"}
    assert client.post("/v1/conversations", body, content_type=JSON).status_code == 201
    with nothing_stored(tenant):
        _refused(client.post("/v1/conversations", body, content_type=JSON), "conversations_create", 409,
                 "external_id_taken", "external_id")  # fmt: skip


COMPACTIONS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"strategy": "magic"}, "invalid", "strategy"),
    ({"up_to": 99}, "out_of_range", "up_to"),
    ({"up_to": 0}, "min_value", "up_to"),
    ({"preserve_recent_turns": -1}, "min_value", "preserve_recent_turns"),
    ({"trigger": "threshold"}, "invalid_choice", "trigger"),
    ({"overflow": {"input_tokens": "many"}}, "invalid", "overflow.input_tokens"),
    ({"wait": 61}, "max_value", "wait"),
    ({"wait": "soon"}, "invalid", "wait"),
    ({"focus": "x" * 10_001}, "max_length", "focus"),
    ({"summarizer": "x"}, "unknown_field", "summarizer"),
]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("body", "code", "attr"), COMPACTIONS)
def test_compaction__bad_field__is_a_400_that_names_it(
    client: Client, tenant: Member, ref: str, body: dict[str, Any], code: str | None, attr: str, dry_run: bool
) -> None:
    with nothing_stored(tenant):
        asked = {**body, "dry_run": dry_run}
        response = client.post(f"/v1/conversations/{ref}/compactions", asked, content_type=JSON)
        _refused(response, "compactions_create", 400, code, attr)


QUERIES: list[tuple[str, str, str]] = [
    ("/v1/conversations?limit=0", "conversations_list", "limit"),
    ("/v1/conversations?limit=251", "conversations_list", "limit"),
    ("/v1/conversations?limit=ten", "conversations_list", "limit"),
    ("/v1/conversations?cursor=abc", "conversations_list", "cursor"),
    ("/v1/conversations?compaction_state=busy", "conversations_list", "compaction_state"),
    ("/v1/conversations?created_after=yesterday", "conversations_list", "created_after"),
    ("/v1/conversations?created_before=2026-01-31T12:00:00", "conversations_list", "created_before"),
    ("/v1/conversations?metadata.a=%00", "conversations_list", "metadata.a"),
    ("/v1/conversations?external_id=%00", "conversations_list", "external_id"),
    ("/v1/compactions?status=done", "compactions_list", "status"),
    ("/v1/compactions?outcome=done", "compactions_list", "outcome"),
    ("/v1/compactions?trigger=me", "compactions_list", "trigger"),
    ("/v1/compactions?position=0", "compactions_list", "position"),
    ("/v1/compactions?position=99999999999", "compactions_list", "position"),
    ("/v1/compactions?q=%00", "compactions_list", "q"),
    ("{ref}/messages?from=-1", "messages_list", "from"),
    ("{ref}/messages?to=x", "messages_list", "to"),
    ("{ref}/messages?cursor=aWQ6NQ", "messages_list", "cursor"),
    ("{ref}/summaries?state=old", "summaries_list", "state"),
    ("{ref}/context?wait=61", "context_get", "wait"),
    ("{ref}/context?wait=nan", "context_get", "wait"),
    ("{ref}/context?wait=soon", "context_get", "wait"),
    ("{ref}/context?wait_for=ever", "context_get", "wait_for"),
    ("{ref}/context?format=gemini", "context_get", "format"),
    ("{ref}/context?format=gemini", "context_get", "format"),
    ("{ref}/context?model=gtp-4o", "context_get", "model"),
    ("{ref}/context?model=%00", "context_get", "model"),
    ("{ref}/context?reserve_output_tokens=-1", "context_get", "reserve_output_tokens"),
    ("{ref}/context?reserve_output_tokens=999999", "context_get", "reserve_output_tokens"),
]


@pytest.mark.parametrize(("path", "operation_id", "attr"), QUERIES)
def test_query__bad_parameter__is_a_400_that_names_it(
    client: Client, ref: str, path: str, operation_id: str, attr: str
) -> None:
    _refused(client.get(path.replace("{ref}", f"/v1/conversations/{ref}")), operation_id, 400, None, attr)


NOWHERE = [
    *("not-a-uuid", "01890000-0000-7000-8000-00000000dead", "ext:nobody", "ext:", "ext:" + "é" * 500),
    *("%00", "ext:%00", "ext:%ED%A0%80", "x" * 3000),
]


@pytest.mark.parametrize("ref", NOWHERE)
def test_conversation__id_of_none__is_a_404(client: Client, tenant: Member, ref: str) -> None:
    _refused(client.get(f"/v1/conversations/{ref}"), "conversations_get", 404, "not_found")
    with nothing_stored(tenant):
        response = client.post(f"/v1/conversations/{ref}/messages", {"messages": [USER]}, content_type=JSON)
        _refused(response, "messages_append", 404, "not_found")


@pytest.mark.parametrize("path", ["compactions/x", "summaries/x", "compactions/x/revert", "conversations/a/b/c/d"])
def test_path__id_that_is_no_uuid__is_a_404_in_the_same_shape(client: Client, path: str) -> None:
    _refused(client.get(f"/v1/{path}"), "compactions_get", 404, "not_found")


@pytest.mark.parametrize("position", [0, 6, 2**31, 2**70])
def test_message__position_of_none__is_a_404(client: Client, ref: str, position: int) -> None:
    _refused(client.get(f"/v1/conversations/{ref}/messages/{position}"), "messages_get", 404, "not_found")


def test_body__beyond_the_services_limit__is_a_413(client: Client, tenant: Member, ref: str, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 1000
    with nothing_stored(tenant):
        body = {"messages": [{"role": "user", "content": "x" * 1000}]}
        response = client.post(f"/v1/conversations/{ref}/messages", body, content_type=JSON)
        _refused(response, "messages_append", 413, "request_too_large")


def test_body__beyond_the_tenants_limit__is_a_413(client: Client, tenant: Member, ref: str) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"max_body_bytes": 1000})
    with nothing_stored(tenant):
        body = {"messages": [{"role": "user", "content": "x" * 1000}]}
        response = client.post(f"/v1/conversations/{ref}/messages", body, content_type=JSON)
        _refused(response, "messages_append", 413, "request_too_large")


def test_batch__of_more_messages_than_a_request_may_have__is_a_400(client: Client, tenant: Member, ref: str) -> None:
    with nothing_stored(tenant):
        response = client.post(f"/v1/conversations/{ref}/messages", {"messages": [USER] * 1001}, content_type=JSON)
        _refused(response, "messages_append", 400, "max_length", "messages")


def _expired(tenant: Member) -> str:
    secret = services.key_create(Scope.values).secret
    ApiKey.objects.filter(prefix=secret.split("_")[1]).update(expires_at=timezone.now() - timedelta(seconds=1))
    return secret


def _revoked(tenant: Member) -> str:
    issued = services.key_create(Scope.values)
    services.key_revoke(issued.key.id)
    return issued.secret


KEYS: dict[str, Callable[[Member], str]] = {
    "of nobody": lambda _: f"ck_{'0' * 12}_{'a' * 43}",
    "with another secret": lambda tenant: tenant.key[:-4] + "AAAA",
    "of the platform": lambda _: f"cp_{'0' * 12}_{'a' * 43}",
    "expired": _expired,
    "revoked": _revoked,
    "empty": lambda _: "",
}


@pytest.mark.parametrize("kind", KEYS)
def test_key__not_good__is_a_401(tenant: Member, ref: str, kind: str) -> None:
    with tenant_scope(tenant.id):
        secret = KEYS[kind](tenant)
    with nothing_stored(tenant):
        response = _client(secret).post(f"/v1/conversations/{ref}/messages", {"messages": [USER]}, content_type=JSON)
        _refused(response, "messages_append", 401, "authentication_failed")


def test_expected_position__does_not_hold__is_a_409_with_the_last_one(client: Client, tenant: Member, ref: str) -> None:
    with nothing_stored(tenant):
        body = {"messages": [USER], "expected_last_position": 4}
        response = client.post(f"/v1/conversations/{ref}/messages", body, content_type=JSON)
        told = _refused(response, "messages_append", 409, "position_conflict", "expected_last_position")
        assert told["last_position"] == 5
    body = {"messages": [USER], "expected_last_position": 5}
    assert client.post(f"/v1/conversations/{ref}/messages", body, content_type=JSON).status_code == 201


def _append(client: Client, ref: str, key: str, **body: Any) -> Any:
    path = f"/v1/conversations/{ref}/messages"
    return client.post(path, {"messages": [USER], **body}, content_type=JSON, headers={"Idempotency-Key": key})


def test_idempotency__same_key_and_body__gives_the_first_answer_again(client: Client, tenant: Member, ref: str) -> None:
    first = _append(client, ref, "k")
    with nothing_stored(tenant):
        second = _append(client, ref, "k")
    assert (first.status_code, second.status_code, first.content) == (201, 201, second.content)
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"


def test_idempotency__same_key_other_body__is_a_409(client: Client, tenant: Member, ref: str) -> None:
    _append(client, ref, "k")
    with nothing_stored(tenant):
        _refused(_append(client, ref, "k", return_context=True), "messages_append", 409, "idempotency_conflict")


@pytest.mark.parametrize("key", ["x" * 256, "a\tb"])
def test_idempotency__unusable_key__is_a_400(client: Client, tenant: Member, ref: str, key: str) -> None:
    with nothing_stored(tenant):
        _refused(_append(client, ref, key), "messages_append", 400, "invalid", "Idempotency-Key")


def test_idempotency__refused_request__may_be_repeated_when_it_can_hold(client: Client, ref: str) -> None:
    assert _append(client, ref, "k", expected_last_position=6).status_code == 409
    _append(client, ref, "other")
    assert _append(client, ref, "k", expected_last_position=6).status_code == 201


def test_idempotency__same_key_at_once__stores_once(tenant: Member, ref: str) -> None:
    def post(_number: int) -> Any:
        try:
            return _append(_client(tenant.key), ref, "k")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))
    made = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in made}) == 1
    for answer in answers:
        if answer.status_code != 201:
            _refused(answer, "messages_append", 409, "idempotency_in_progress")
            assert answer.headers["Retry-After"] == "1"
    assert _client(tenant.key).get(f"/v1/conversations/{ref}").json()["last_position"] == 6


def test_errors__all__quote_nothing_of_the_request(client: Client, ref: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": ["secret-text"]}]}).replace("]}", "]", 1)
    assert b"secret-text" not in client.post(f"/v1/conversations/{ref}/messages", body, content_type=JSON).content


# --- what an error says ----------------------------------------------------------------------------------------------

TENANT, NEW_KEY = ("PATCH", "tenant", "tenant_update"), ("POST", "api-keys", "api_keys_create")
CREATE = ("POST", "conversations", "conversations_create")
UPDATE = ("PATCH", "conversations/{ref}", "conversations_update")
APPEND = ("POST", "conversations/{ref}/messages", "messages_append")
FLAG = ("PATCH", "conversations/{ref}/messages/1", "messages_update")
ASK = ("POST", "conversations/{ref}/compactions", "compactions_create")
SAID: list[tuple[tuple[str, str, str], Any, list[tuple[str, str | None, str]]]] = [
    (CREATE, {"model": "gpt-4o", "policy": {"colour": 1, "threshold": 7, "enabled": True, "strategy": "x"}}, [
        ("unknown_field", "policy.colour", "no such policy field. Known: enabled, preset"),
        ("invalid", "policy.threshold", "above 0 and at most 1"),
        ("invalid", "policy.strategy", "sliding, hierarchical, hybrid"),
    ]),
    (UPDATE, {"policy": {"colour": None, "target": 2}}, [
        ("unknown_field", "policy.colour", "Known: "), ("invalid", "policy.target", "below 1"),
    ]),
    (TENANT, {"policy": {"colour": 1, "threshold": 7}}, [
        ("unknown_field", "policy.colour", "Known: "), ("invalid", "policy.threshold", "at most 1"),
    ]),
    (CREATE, {"model": "gpt-4o", "format": "gemini"}, [
        ("invalid_choice", "format", "Must be one of openai, anthropic."),
    ]),
    (NEW_KEY, {"scopes": ["root"]}, [("invalid_choice", "scopes.0", "Must be one of read, write, admin.")]),
    (ASK, {"trigger": "mood"}, [("invalid_choice", "trigger", "Must be one of manual, overflow.")]),
    (ASK, {"trigger": "manual", "overflow": {"max_tokens": 9000}}, [("invalid", "overflow", "`trigger: overflow`")]),
    (ASK, {"overflow": {}}, [("invalid", "overflow", "`trigger: overflow`")]),
    (ASK, {"trigger": "overflow", "overflow": 5}, [("invalid", "overflow", "Must be an object.")]),
    (APPEND, {"messages": [USER], "details": []}, [("length_mismatch", "details", "one entry per message")]),
    (APPEND, {"messages": [USER], "details": ["x"]}, [("invalid", "details.0", "Must be an object.")]),
    (APPEND, {"messages": "x"}, [("not_a_list", "messages", "Must be a list.")]),
    (APPEND, [], [("invalid", None, "The body must be a JSON object.")]),
    (APPEND, None, [("null", None, "The body must be a JSON object.")]),
    (APPEND, "x", [("invalid", None, "The body must be a JSON object.")]),
    (CREATE, {"model": "gpt-4o", "policy": []}, [("not_a_dict", "policy", "Must be an object.")]),
    (UPDATE, {"format": "anthropic"}, [("read_only", "format", "Create a conversation")]),
    (UPDATE, {"external_id": "x"}, [("read_only", "external_id", "Fork")]),
    (UPDATE, {"messages": []}, [("read_only", "messages", "Append")]),
    (UPDATE, {"colour": "red"}, [("unknown_field", "colour", "no such field")]),
    (FLAG, {"content": "x"}, [("read_only", "content", "DELETE .../messages?from=")]),
    (FLAG, {"message": USER}, [("read_only", "message", "append it anew")]),
    (FLAG, {"occurred_at": None}, [("read_only", "occurred_at", "when the message is appended")]),
    (TENANT, {"limits": {"conversations": 1}}, [("read_only", "limits", "platform")]),
    (TENANT, {"name": "x"}, [("read_only", "name", "platform")]),
    (TENANT, {"summarizer": "gpt-4o"}, [("invalid", "summarizer", "Must be an object.")]),
]  # fmt: skip
PYTHON = ("dict", "NoneType", "non_field", "'str'", '"str"', '"list"', "Expected")


@pytest.mark.parametrize(("where", "body", "errors"), SAID)
def test_error__of_a_request__says_all_that_is_wrong_and_what_may_be(
    client: Client, tenant: Member, ref: str, where: tuple[str, str, str], body: Any, errors: list[Any]
) -> None:
    method, path, operation_id = where
    with nothing_stored(tenant):
        response = client.generic(method, f"/v1/{path.format(ref=ref)}", json.dumps(body), content_type=JSON)
        told = _refused(response, operation_id, 400)["errors"]
    assert [(one["code"], one["attr"]) for one in told] == [(code, attr) for code, attr, _ in errors]
    for one, (_, _, part) in zip(told, errors, strict=True):
        assert part in one["detail"]
        assert not any(word in one["detail"] for word in PYTHON)


def test_fields__that_a_patch_calls_fixed__are_shown_and_no_others_are_left_out() -> None:
    for given, shown in (
        (ConversationPatch, ConversationOut),
        (MessagePatch, MessageOut),
        (TenantChangeSerializer, TenantSerializer),
    ):
        assert set(shown().fields) <= set(given().fields) | set(given.fixed)


def test_choices__of_every_request__are_told() -> None:
    todo: list[type[StrictSerializer]] = [StrictSerializer]
    while todo:
        one = todo.pop()
        todo += one.__subclasses__()
        fields = [getattr(field, "child", field) for field in one().fields.values()]
        assert [f for f in fields if isinstance(f, serializers.ChoiceField) and not isinstance(f, ChoiceField)] == []


@pytest.mark.parametrize("kind", ["nope", "ext:nope", "another tenant's"])
def test_compactions__of_a_conversation_that_is_not_there__are_a_404_naming_it(
    client: Client, stranger: Member, kind: str
) -> None:
    body = {"model": "gpt-4o"}
    theirs = _client(stranger.key).post("/v1/conversations", body, content_type=JSON).json()["id"]
    name = theirs if kind == "another tenant's" else kind
    told = _refused(client.get("/v1/compactions", {"conversation": name}), "compactions_list", 404, "not_found")
    assert told["errors"] == [{"code": "not_found", "detail": "No such conversation.", "attr": "conversation"}]


@pytest.mark.parametrize(
    ("path", "header", "code", "part"),
    [
        ("tenant", None, "not_authenticated", "`Authorization: Bearer <key>`"),
        ("tenant", "ck_0123456789ab_x", "not_authenticated", "`Authorization: Bearer <key>`"),
        ("tenant", "Basic abc", "not_authenticated", "`Authorization: Bearer <key>`"),
        ("tenant", "Bearer nonsense", "authentication_failed", "unknown, expired or revoked"),
        ("tenant", "Bearer cp_0123456789ab_x", "authentication_failed", "A tenant's key is wanted here"),
        ("admin/tenants", None, "not_authenticated", "`Authorization: Bearer <key>`"),
        ("admin/tenants", "Bearer ck_0123456789ab_x", "authentication_failed", "A platform key is wanted here"),
        ("admin/tenants", "Bearer {key}", "authentication_failed", "A platform key is wanted here"),
        ("admin/tenants", "Bearer cp_0123456789ab_x", "authentication_failed", "unknown, expired or revoked"),
    ],
)
def test_error__of_a_request_without_its_key__says_which_is_wanted(
    tenant: Member, path: str, header: str | None, code: str, part: str
) -> None:
    headers = {} if header is None else {"Authorization": header.format(key=tenant.key)}
    response = Client(headers=headers).get(f"/v1/{path}")
    (error,) = response.json()["errors"]
    assert (response.status_code, error["code"]) == (401, code)
    assert part in error["detail"]
