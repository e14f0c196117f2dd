"""The HTTP side: `POST /v1/chat/completions`, `GET /v1/models`, and `/_script`, `/_release`, `/_calls`, `/_reset`."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.model_server import behaviours

DEFAULT_KEY = "test-key"
HANG = 600.0  # seconds a hanging answer waits for its client to leave
DRIP = 0.05  # seconds between two bytes


@dataclass(slots=True)
class Script:
    behaviours: list[str] = field(default_factory=lambda: ["honest"])
    latency: float | None = None
    key: str = DEFAULT_KEY
    used: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def next(self) -> tuple[str, int]:
        """The behaviour of the next call, and how often it was used before in a row."""
        last = len(self.behaviours) - 1
        index, self.used = self.used, self.used + 1
        return self.behaviours[min(index, last)], max(0, index - last)


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a hanging answer does not hold up a test's end
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], latency: float = 0.0) -> None:
        super().__init__(address, _Handler)
        self.latency = latency
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.scripts: dict[str, Script] = {}
        self.calls: list[dict[str, Any]] = []
        self.in_flight = 0
        self.most_in_flight = 0

    def shutdown(self) -> None:
        self.stopping.set()
        super().shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave in the middle are part of the script."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Silent."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/v1/models":
            names = ["honest", *self.server.scripts]
            self._json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
        elif url.path == "/_calls":
            wanted = parse_qs(url.query).get("model", [None])[0]
            with self.server.lock:
                calls = [call for call in self.server.calls if wanted in (None, call["model"])]
                most = self.server.most_in_flight
            self._json(200, {"calls": calls, "most_in_flight": most})
        else:
            self._json(404, behaviours.error_body("Unknown path.", "invalid_request_error", None))

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        except ValueError:
            return self._json(400, behaviours.error_body("Not JSON.", "invalid_request_error", None))
        if self.path == "/v1/chat/completions":
            return self._complete(body)
        if self.path == "/_script":
            return self._script(body)
        if self.path == "/_release":
            return self._release(body["model"])
        if self.path == "/_reset":
            return self._reset(body.get("model"))
        return self._json(404, behaviours.error_body("Unknown path.", "invalid_request_error", None))

    def _script(self, body: dict[str, Any]) -> None:
        wrong = [name for name in body["behaviours"] if not behaviours.known(name)]
        if wrong or not body["behaviours"]:
            return self._json(400, behaviours.error_body(f"Unknown behaviours: {wrong}", "invalid_request_error", None))
        script = Script(body["behaviours"], body.get("latency"), body.get("key") or DEFAULT_KEY)
        with self.server.lock:
            self.server.scripts[body["model"]] = script
        return self._json(200, {})

    def _release(self, model: str) -> None:
        with self.server.lock:
            self.server.scripts[model].released.set()
        self._json(200, {})

    def _reset(self, model: str | None) -> None:
        with self.server.lock:
            if model is None:
                self.server.scripts.clear()
                self.server.calls.clear()
                self.server.most_in_flight = 0
            else:
                self.server.scripts.pop(model, None)
                self.server.calls[:] = [call for call in self.server.calls if call["model"] != model]
        self._json(200, {})

    def _complete(self, body: dict[str, Any]) -> None:
        server, model = self.server, str(body.get("model"))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        with server.lock:
            script = server.scripts.setdefault(model, Script())
            behaviour, repeated = script.next()
            headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in ("authorization", "api-key")}
            call = {"model": model, "behaviour": behaviour, "time": time.time(), "key_ok": key == script.key}
            server.calls.append({**call, "headers": headers, "body": body})
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            answer_at = time.monotonic() + (server.latency if script.latency is None else script.latency)
            reply = behaviours.reply(behaviour, body, key=key, repeated=repeated)
            server.stopping.wait(max(0.0, answer_at - time.monotonic()))
            if reply.held:
                self._hold(script)
            self._reply(reply)
        finally:
            with server.lock:
                server.in_flight -= 1

    def _reply(self, reply: behaviours.Reply) -> None:
        if reply.hang:
            self._wait_for_the_client_to_leave(HANG)
            self.close_connection = True
            return
        self.server.stopping.wait(reply.delay)
        data = reply.body
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if reply.cut:
            self.wfile.write(data[: len(data) // 2])
            # Close with a reset, as a crashed server or a lost proxy does.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        elif reply.drip:
            for i in range(len(data)):
                self.wfile.write(data[i : i + 1])
                if self.server.stopping.wait(DRIP):
                    break
        else:
            self.wfile.write(data)

    def _hold(self, script: Script) -> None:
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline and not (script.released.wait(0.02) or self.server.stopping.is_set()):
            pass

    def _wait_for_the_client_to_leave(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.server.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.1)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return

    def _json(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
