"""Starting a model server, and telling it what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from tests.model_server.server import DEFAULT_KEY, ModelServer

_opener = build_opener(ProxyHandler({}))  # loopback never goes through a proxy


class Control:
    """A running server, seen from a test. `base_url` is what a client calls; the rest speaks to the control paths."""

    key = DEFAULT_KEY  # the key that counts as right where a script names no other

    def __init__(self, url: str) -> None:
        self.url = url
        self.base_url = f"{url}/v1"

    def script(
        self, model: str, behaviour: str | Sequence[str], *, latency: float | None = None, key: str | None = None
    ) -> str:
        """What `model` does from now on: one behaviour, or one per call and then the last again. Returns `model`.

        `latency`: seconds before each answer. `key`: the right key (`calls` tell whether it came).
        """
        behaviours = [behaviour] if isinstance(behaviour, str) else list(behaviour)
        self._send("/_script", {"model": model, "behaviours": behaviours, "latency": latency, "key": key})
        return model

    def release(self, model: str) -> None:
        """Let the answers go that `held` keeps back for this model, now and from now on, until it is scripted anew."""
        self._send("/_release", {"model": model})

    def calls(self, model: str | None = None) -> list[dict[str, Any]]:
        """The calls received, oldest first: model, behaviour, time, key_ok, headers, body."""
        calls: list[dict[str, Any]] = self._send(f"/_calls?model={quote(model)}" if model else "/_calls")["calls"]
        return calls

    def most_in_flight(self) -> int:
        """The most calls that were being answered at one moment."""
        most: int = self._send("/_calls?model=-")["most_in_flight"]
        return most

    def reset(self, model: str | None = None) -> None:
        """Forget scripts and calls, of one model or of all."""
        self._send("/_reset", {"model": model})

    def _send(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with _opener.open(Request(self.url + path, data=data), timeout=10) as answer:  # noqa: S310  # our own URL
            return json.load(answer)


@contextmanager
def running(latency: float = 0.0) -> Iterator[Control]:
    """A server in threads of this process."""
    server = ModelServer(("127.0.0.1", 0), latency=latency)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="model-server")
    thread.start()
    try:
        yield Control(f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def spawned(latency: float = 0.0) -> Iterator[Control]:
    """A server in a process of its own, which leaves the caller's interpreter alone under load."""
    command = [sys.executable, "-m", "tests.model_server", "--port", "0", "--latency", str(latency)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Control(f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}")
        finally:
            process.terminate()
