"""Bodies in and out: parsers.py and renderers.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils.functional import lazystr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_service.api.renderers import RawJSON, dumps
from tenants import services
from tenants.scope import platform_scope

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)  # surrogates and NUL included
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_dumps__any_json__is_read_back_as_it_was(value: Any) -> None:
    assert json.loads(dumps(value)) == value


@given(JSON)
def test_dumps__stored_text__is_spliced_in_unread(value: Any) -> None:
    text = json.dumps(value)
    assert dumps({"message": RawJSON(text), "beside": "\ud800"}).decode().count(text) >= 1
    assert json.loads(dumps([RawJSON(text)])) == [value]


def test_dumps__our_own_types__have_the_documented_forms() -> None:
    value = {
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "id": UUID(int=1),
        "cost": Decimal("0.00000123"),
        "text": lazystr("x"),
    }
    expected = b'{"at":"2026-01-02T03:04:05Z","id":"00000000-0000-0000-0000-000000000001","cost":0.00000123,"text":"x"}'
    assert dumps(value) == expected
    assert json.loads(dumps({**value, "lone": "\ud800"}))["at"] == "2026-01-02T03:04:05Z"


def test_dumps__something_else__raises() -> None:
    with pytest.raises(TypeError):
        dumps({"x": object()})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JSON)
def test_parser__any_json__reaches_the_view_as_it_was(client: Client, value: Any) -> None:
    response = client.post("/echo", json.dumps({"value": value}), content_type="application/json")
    assert response.status_code == 200
    assert json.loads(response.content) == {"value": value}


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"{}{}", b"{'a': 1}", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'"\xff"', b"\xef\xbb\xbf{}",
     b"[" * 5000 + b"]" * 5000, b"[" * 100_000, b'{"a":' * 300 + b"1" + b"}" * 300],
    ids=["open", "blank", "two", "quotes", "nan", "infinity", "overflow", "utf8", "bom", "deep", "open2", "dict"],
)  # fmt: skip
def test_parser__not_json__is_a_400(client: Client, body: bytes) -> None:
    response = client.post("/echo", body or b" ", content_type="application/json")
    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "parse_error"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_parser__another_type__is_a_415(client: Client, content_type: str) -> None:
    assert client.post("/echo", b"{}", content_type=content_type).status_code == 415


def test_parser__charset_beside_the_type__is_fine(client: Client) -> None:
    assert client.post("/echo", b"{}", content_type="Application/JSON; charset=utf-8").status_code == 200


def test_parser__no_body__is_an_empty_object(client: Client) -> None:
    assert client.generic("POST", "/echo").json() == {}


class _Counted(BytesIO):
    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.most = max(self.most, len(self.getbuffer()) if size is None or size < 0 else size)
        return super().read(size)


def test_body__declared_longer_than_the_limit__is_a_413_and_never_held_as_a_whole(
    client: Client, settings: Any
) -> None:
    settings.MAX_BODY_BYTES = 2000
    stream = _Counted(b" " * 1_000_000)
    body = {"wsgi.input": stream, "CONTENT_LENGTH": "1000000", "CONTENT_TYPE": "application/json"}
    response = client.generic("POST", "/echo", **body)  # type: ignore[arg-type]
    assert (response.status_code, response.json()["errors"][0]["code"]) == (413, "request_too_large")
    assert stream.most <= 65536
    assert stream.tell() == 1_000_000  # nothing of it is left before the next request


@pytest.mark.parametrize(("size", "status"), [(2000, 200), (2001, 413), (90_000, 413)])
def test_body__in_chunks__is_read_up_to_the_limit(client: Client, settings: Any, size: int, status: int) -> None:
    settings.MAX_BODY_BYTES = 2000
    text = json.dumps("x" * (size - 2)).encode()
    chunked = {"wsgi.input": BytesIO(text), "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_TYPE": "application/json"}
    assert client.generic("POST", "/echo", **chunked).status_code == status  # type: ignore[arg-type]


def test_body__longer_than_the_tenants_own_limit__is_a_413(client: Client, tenant: Any) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"max_body_bytes": 10})
    assert client.post("/echo", b'{"a":"bcdef"}', content_type="application/json").status_code == 413


def test_body__shorter_than_declared__is_a_400(client: Client) -> None:
    body = {"wsgi.input": BytesIO(b"{}"), "CONTENT_LENGTH": "10", "CONTENT_TYPE": "application/json"}
    assert client.generic("POST", "/echo", **body).status_code == 400  # type: ignore[arg-type]
