"""What reaches Django before any view does."""

from __future__ import annotations

import pytest

from tests.fuzz.hostile import Request
from tests.fuzz.wsgi import App

MANY = "&".join(f"p{number}=1" for number in range(1500))


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", "; charset=latin-1", "; charset=nothing", "; charset="])
def test_query__too_many_parameters_beside_any_charset__is_no_5xx(db: None, charset: str) -> None:
    headers = {"Content-Type": f"application/json{charset}"}
    status, _, _ = App()(Request("GET", f"/v1/conversations?{MANY}", headers, b""))
    assert status < 500


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/v1/tenant", "/v1/nothing", "/admin/login/"])
def test_head__any_path__is_the_get_without_its_body(db: None, path: str) -> None:
    status, headers, body = App()(Request("GET", path, {}, b""))
    assert body

    got = App()(Request("HEAD", path, {}, b""))

    assert (got[0], got[2]) == (status, b"")
    assert got[1]["content-type"] == headers["content-type"]
    if path != "/metrics":  # which grows by every request
        assert got[1].get("content-length") == headers.get("content-length")
