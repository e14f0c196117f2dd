from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.conftest import Member


@pytest.fixture
def client(tenant: Member) -> Client:
    """The API as the test's tenant sees it, in this process."""
    return Client(headers={"Authorization": f"Bearer {tenant.read_key}"}, raise_request_exception=False)


def _count(client: Client, **body: Any) -> Any:
    return client.post("/v1/count-tokens", {"model": "gpt-4o", **body}, content_type="application/json")


def test_count__openai_model__is_exact_and_adds_up(client: Client) -> None:
    body = _count(client, system="Be brief.", messages=[{"role": "user", "content": "hello world"}]).json()
    assert (body["method"], body["model"], body["breakdown"]["tools"]) == ("exact", "gpt-4o", 0)
    assert body["tokens"] == sum(body["breakdown"].values())


def test_count__leading_system_message__counts_as_the_system_prompt(client: Client) -> None:
    hello = {"role": "user", "content": "hello world"}
    body = _count(client, messages=[{"role": "system", "content": "Be brief."}, hello]).json()
    assert body["breakdown"]["messages"] == _count(client, messages=[hello]).json()["breakdown"]["messages"]


def test_count__same_context_as_a_conversation__is_what_its_meter_says(client: Client, tenant: Member) -> None:
    context = {
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "hello world"}, {"role": "assistant", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    }
    writer = Client(headers={"Authorization": f"Bearer {tenant.key}"})
    made = writer.post("/v1/conversations", {"model": "gpt-4o", **context}, content_type="application/json").json()
    assert _count(client, **context).json()["tokens"] == made["meter"]["tokens"]


def test_count__result_without_its_call__is_counted(client: Client) -> None:
    assert _count(client, messages=[{"role": "tool", "tool_call_id": "x", "content": "42"}]).status_code == 200


@pytest.mark.parametrize(
    ("body", "code", "attr"),
    [
        ({"model": "gtp-4o", "messages": []}, "model_unknown", "model"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, None, "messages.0.role"),
        ({"messages": [], "max_tokens": 5}, "unknown_field", "max_tokens"),
        ({}, "required", "messages"),
        ({"messages": [{"role": "system", "content": "a"}], "system": "b"}, "system_given_twice", "system"),
    ],
)
def test_count__bad_request__is_a_400_that_names_it(client: Client, body: Any, code: str | None, attr: str) -> None:
    response = _count(client, **body)
    assert response.status_code == 400
    [error] = response.json()["errors"]
    assert error["attr"] == attr
    assert code in (None, error["code"])


def test_count__unknown_model__names_the_nearest(client: Client) -> None:
    assert "gpt-4o" in _count(client, model="gtp-4o", messages=[]).json()["nearest"]


@pytest.mark.parametrize("fmt", [None, "openai", "anthropic"])
def test_compact_tool__each_format__is_one_tool_with_an_optional_focus(client: Client, fmt: str | None) -> None:
    tool = client.get("/v1/tools/compact", {} if fmt is None else {"format": fmt}).json()
    inner = tool if fmt == "anthropic" else tool["function"]
    schema = inner["input_schema" if fmt == "anthropic" else "parameters"]
    assert inner["name"] == "compact"
    assert set(schema["properties"]) == {"focus"}
    assert schema["required"] == []


def test_compact_tool__other_format__is_a_400(client: Client) -> None:
    response = client.get("/v1/tools/compact?format=gemini")
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (400, "format")
