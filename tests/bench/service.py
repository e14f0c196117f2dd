"""The running service that is measured: a stack of its own in a temporary folder, and one web process more.

That process (`tests.bench.wsgi`) has the service's routes and an authenticated view that answers `{}`, which the cost
of a request is held against.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg

from compaction_service.local.engines import free_port
from compaction_service.local.processes import Process
from compaction_service.local.stack import BASE_DIR, Stack, running_stack

EMPTY = "/v1/bench/empty"


class Client:
    """One kept-open connection with a key. Cheap on purpose: it shares the machine with what it measures."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body. Raises on any status that is not a success."""
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return text

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.raw(method, f"/v1/{path}", None if body is None else json.dumps(body).encode()))

    def create(self, **fields: Any) -> str:
        """A conversation's path below /v1."""
        made = self.call("POST", "conversations", {"model": "gpt-4o", **fields})
        return f"conversations/{made['id']}"

    def append(self, path: str, *messages: Any, **fields: Any) -> Any:
        return self.call("POST", f"{path}/messages", {"messages": messages, **fields})

    def close(self) -> None:
        self._connection.close()


@dataclass
class Web:
    """A web server of our own choice, with its one worker process."""

    port: int
    process: Process
    started_s: float
    worker: Any = field(init=False)

    def __post_init__(self) -> None:
        self.worker = psutil.Process(self.process.popen.pid).children()[0]

    def cpu_s(self) -> float:
        """CPU seconds of the worker process so far, by the scheduler's own clock (times() has steps of 10 ms)."""
        spent = 0
        for thread in Path(f"/proc/{self.worker.pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text().split()[0])
        return spent / 1e9

    def rss_mb(self) -> float:
        return float(self.worker.memory_info().rss) / 1e6


@dataclass
class Bench:
    """What a measure gets: the stack, a key of its tenant, and ways to more."""

    stack: Stack
    stored: int  # messages in the big database
    replayed: int  # messages of a replay

    @property
    def key(self) -> str:
        return self.stack.accounts["api_key"]

    def owner(self) -> psycopg.Connection[Any]:
        """A connection that owns the tables and sees all tenants."""
        return psycopg.connect(self.stack.env["DATABASE_URL"], autocommit=True)

    @contextmanager
    def web(
        self,
        *,
        module: str = "tests.bench.wsgi",
        settings: str = "compaction_service.settings",
        cwd: Path = BASE_DIR,
        ready: str = "/healthz",
    ) -> Iterator[Web]:
        """A web server of `module`, from its first answer to `ready` to the end of the context."""
        port = free_port()
        argv = ["-m", "gunicorn", "-c", "python:compaction_service.gunicorn", "-b", f"127.0.0.1:{port}", module]
        env = {
            **self.stack.env,
            "PYTHONPATH": f"{BASE_DIR}:{cwd}",
            "WEB_CONCURRENCY": "1",
            "DJANGO_SETTINGS_MODULE": settings,
        }
        begun = time.perf_counter()
        process = self.stack.group.start(
            f"bench-{port}", [sys.executable, *argv], env=env, cwd=cwd, stop_signal=signal.SIGTERM
        )
        try:
            while not _answers(port, ready):
                process.check()
                time.sleep(0.005)
            yield Web(port, process, time.perf_counter() - begun)
        finally:
            self.stack.group.stop([process], grace_s=10)


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def benched(*, stored: int, replayed: int) -> Iterator[Bench]:
    """The service, running. Afterwards this process's Django speaks to its database."""
    folder = Path(tempfile.mkdtemp(prefix="compaction-bench-"))
    try:
        with running_stack({**os.environ, "LOG_LEVEL": "INFO"}, folder) as stack:
            os.environ.update(stack.env)
            yield Bench(stack, stored, replayed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
