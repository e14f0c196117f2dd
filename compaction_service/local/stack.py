"""The whole service on one machine: engines, database set-up, web, worker and beat, as real processes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from compaction_service.local import environment
from compaction_service.local.engines import running_engines
from compaction_service.local.errors import StackError
from compaction_service.local.processes import Process, ProcessGroup

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = BASE_DIR / ".data"
ACCOUNTS = "up.json"  # the tenant, keys and admin user; see accounts.py
USUAL_PORT = 8000
READY_TIMEOUT_S = 90
READY_POLL_S = 0.1
LONGER_S = 5  # than the grace of a worker: to hand back what it could not end
SERVICES = ("web", "worker", "beat")
ARENAS = "2"  # glibc keeps an arena for each of many threads otherwise, a tenth of the memory; so in the image
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our own loopback address


@dataclass
class Stack:
    """A running stack. `env` is the environment of its processes, for commands that should see the same database."""

    base_url: str
    listener: socket.socket
    env: Mapping[str, str]
    data_dir: Path
    group: ProcessGroup
    services: dict[str, Process] = field(default_factory=dict)

    @property
    def accounts(self) -> dict[str, str]:
        """What `up.json` says: api_base, api_key, platform_key, admin_url, admin_user, admin_password."""
        accounts: dict[str, str] = json.loads((self.data_dir / ACCOUNTS).read_text())
        return accounts

    @property
    def stop_grace_s(self) -> float:
        """How long a process may take to stop before it is killed: a worker hands back first."""
        return float(self.env["WORKER_GRACE"]) + LONGER_S

    def start(self, service: str) -> None:
        """Start web, worker or beat (again, after its process has ended)."""
        if service in self.services:
            self.group.stop([self.services[service]], grace_s=self.stop_grace_s)
        self.services[service] = self.group.start(
            service,
            [sys.executable, "-m", *self._command(service)],
            env={"MALLOC_ARENA_MAX": ARENAS, **self.env},
            cwd=BASE_DIR,
            stop_signal=signal.SIGTERM,
            inherit=[self.listener.fileno()] if service == "web" else (),
        )

    def manage(self, *arguments: str) -> None:
        """Run a `manage.py` command to its end; its output is in the log folder. Raises StackError if it fails."""
        argv = [sys.executable, "manage.py", *arguments]
        self.group.run(arguments[0], argv, env=self.env, cwd=BASE_DIR)

    def _command(self, service: str) -> list[str]:
        """A module and its arguments; docker/compose.yaml runs the same."""
        web = ["gunicorn", "-c", "python:compaction_service.gunicorn", "-b", f"fd://{self.listener.fileno()}"]
        celery = ["celery", "-A", "worker.app"]
        # Workers need no word of each other: gossip is one more thing that can fail when the broker was away.
        alone = ["--without-gossip", "--without-mingle"]
        return {
            "web": [*web, "compaction_service.wsgi"],
            "worker": [*celery, "worker", "--pool", "threads", "-c", "96", "-Q", "compactions,default", *alone],
            "beat": [*celery, "beat", "-s", str(self.data_dir / "beat-schedule")],
        }[service]

    def wait_ready(self) -> None:
        """Return once the web process says that everything it needs is there. Raises StackError after a while."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            self.group.check()
            state = _readiness(f"{self.base_url}/readyz")
            if state is None:
                return
            if time.monotonic() > deadline:
                raise StackError(f"Not ready after {READY_TIMEOUT_S} s: {state}. Logs: {self.group.log_dir}")
            time.sleep(READY_POLL_S)


@contextmanager
def running_stack(environ: Mapping[str, str], data_dir: Path) -> Iterator[Stack]:
    """Run everything until the context is left; yields once requests can be served.

    `environ` may bring engines of its own (DATABASE_URL, BROKER_URL, CACHE_URL) and a PORT; the rest is made in
    `data_dir`, which one stack at a time may use. Raises StackError when something does not start.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    with (
        _locked(data_dir),
        _listen(environ.get("PORT", "")) as listener,
        ProcessGroup(data_dir / "log") as group,
        running_engines(environ, data_dir, group) as engines,
    ):
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        file = data_dir / environment.FILE
        values = environment.complete(environ, engines, environment.read(file))
        environment.write(file, values)
        stack = Stack(base_url, listener, {**environ, **values}, data_dir, group)
        try:
            stack.manage("setup_local", base_url, str(data_dir / ACCOUNTS))
            for service in SERVICES:
                stack.start(service)
            stack.wait_ready()
            yield stack
        finally:
            group.stop(list(stack.services.values()), grace_s=stack.stop_grace_s)
            # URLs of engines that have stopped would only mislead the next command.
            environment.write(file, {name: values[name] for name in environment.SECRETS})


def _readiness(url: str) -> str | None:
    """None when ready, else what is missing."""
    try:
        with DIRECT.open(url, timeout=2):
            return None
    except urllib.error.HTTPError as exc:
        with exc:
            return f"HTTP {exc.code} {exc.read(2000).decode(errors='replace')}"
    except OSError as exc:
        return str(exc)


def _listen(wanted: str) -> socket.socket:
    """A socket on the port asked for, or on the usual one, or on any free one where that is taken.

    The web process inherits it, so that nobody can take the port between the choice and its start.
    """
    if not wanted:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", USUAL_PORT))
        return socket.create_server(("127.0.0.1", 0))
    if not (wanted.isascii() and wanted.isdigit() and 0 < int(wanted) < 65536):
        raise StackError("PORT must be a number between 1 and 65535.")
    try:
        return socket.create_server(("127.0.0.1", int(wanted)))
    except OSError as exc:
        raise StackError(f"Port {wanted} cannot be used ({exc.strerror}). Choose another PORT, or none.") from exc


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Hold the folder for one stack. The system drops the lock with the process, however it ends."""
    with (data_dir / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip()
            raise StackError(
                f"A stack already runs here (process {owner}); see {data_dir / ACCOUNTS}. `kill {owner}` stops it."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
