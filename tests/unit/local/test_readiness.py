"""Asking a stack's own web process whether it is ready."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from compaction_service.local import stack


class Answer(BaseHTTPRequestHandler):
    """Ready at /readyz, and nowhere else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()
        self.wfile.write(b"the database")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Nothing."""


@pytest.fixture
def served() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_readiness__a_proxy_in_the_environment__is_not_asked(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert stack._readiness(f"{served}/readyz") is None


def test_readiness__not_ready__says_what_is_missing(served: str) -> None:
    assert stack._readiness(f"{served}/else") == "HTTP 503 the database"
