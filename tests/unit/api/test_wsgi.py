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
