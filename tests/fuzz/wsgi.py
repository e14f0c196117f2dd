"""Requests as a web server hands them to the application, in this process: nothing between is forgiving."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from compaction_service.api.wsgi import Handler
from tests.fuzz.hostile import Request


class App:
    """The application under its own handler."""

    def __init__(self) -> None:
        self._handler = Handler()

    def __call__(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        path, _, query = request.target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path.encode("latin-1")).decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": str(len(request.body)),
            "wsgi.input": BytesIO(request.body),
            "wsgi.url_scheme": "http",
            "HTTP_HOST": "localhost",
        }
        for name, value in request.headers.items():
            key = name.upper().replace("-", "_")
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            started["status"], started["headers"] = int(status[:3]), {k.lower(): v for k, v in headers}

        response = self._handler(environ, start_response)
        try:
            body = b"".join(response)
        finally:
            response.close()
        return started["status"], started["headers"], body
