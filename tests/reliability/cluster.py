"""The processes of one cluster, and what is done to them from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import psycopg
from psycopg.rows import DictRow, dict_row

from compaction_service.local import environment
from compaction_service.local.engines import running_engines
from compaction_service.local.processes import Account, Process, ProcessGroup
from compaction_service.local.stack import ACCOUNTS, BASE_DIR, Stack
from tests.reliability.client import PATIENCE_S, Client
from tests.reliability.forker import Forker

POLL_S = 0.05
READY = "ready."  # what Celery logs once a worker takes messages


class Never(AssertionError):  # noqa: N818 -- it says what happened
    """What was waited for did not happen."""


def until(what: str, look: Callable[[], object], *, within: float = PATIENCE_S, every: float = POLL_S) -> None:
    """Wait until `look()` is true. Raises Never."""
    deadline = time.monotonic() + within
    while not look():
        if time.monotonic() > deadline:
            raise Never(f"not within {within:.0f} s: {what}")
        time.sleep(every)


@dataclass
class Cluster:
    """A running stack, its workers by number, and its engines."""

    stack: Stack
    engines: dict[str, str]
    opened: ExitStack  # closed before the processes stop
    workers: dict[int, Process] = field(default_factory=dict)
    starts: int = 0
    forks: set[str] = field(default_factory=set)  # ids of conversations that are copies, for the checks at the end

    @property
    def owner_url(self) -> str:
        return self.engines["DATABASE_URL"]

    def client(self, key: str) -> Client:
        made = Client(f"{self.stack.base_url}/v1", key)
        self.opened.callback(made.http.close)
        return made

    # Web, workers, beat

    def start_worker(self, number: int = 1, *, wait: bool = True, forked: bool = True) -> Process:
        """Start worker `number` (again). `wait`: until it takes messages. `forked`: see `forker`."""
        if old := self.workers.pop(number, None):
            self._kill(old)
        self.starts += 1
        name, group = f"worker-{number}-{self.starts}", self.stack.group
        command = [*self.stack._command("worker"), "-n", f"w{number}@reliability"]
        if forked:
            log = group.log_dir / f"{name}.log"
            process = Process(name, self._forker.fork(command[1:], log), log, signal.SIGTERM)  # type: ignore[arg-type]
        else:
            argv = [sys.executable, "-m", *command]
            process = group.start(name, argv, env=self.stack.env, cwd=BASE_DIR, stop_signal=signal.SIGTERM)
        self.workers[number] = process
        if wait:
            until(f"worker {number} is ready", lambda: self.worker_ready(number))
        return process

    @cached_property
    def _forker(self) -> Forker:
        group = self.stack.group
        made = Forker(self.stack.env, BASE_DIR, group.log_dir / "forker.log", group._guard.pid)
        self.opened.callback(made.close)
        return made

    def worker_ready(self, number: int) -> bool:
        """Whether it has logged that it takes messages. Raises StackError where it has ended instead."""
        process = self.workers[number]
        process.check()
        return process.log.exists() and READY in process.log.read_text(errors="replace")

    def workers_ready(self) -> list[int]:
        return [number for number in list(self.workers) if self.worker_ready(number)]

    def kill_worker(self, number: int) -> float:
        """SIGKILL; the time (of `time.time`) at which it was gone."""
        process = self.workers.pop(number)
        self._kill(process)
        return time.time()

    def have_workers(self, count: int) -> list[int]:
        """Exactly `count` workers, ready; their numbers. A test's beginning."""
        for number in [one for one, process in self.workers.items() if process.popen.poll() is not None]:
            self.kill_worker(number)
        for number in sorted(self.workers)[count:]:
            self.kill_worker(number)
        while len(self.workers) < count:
            self.start_worker(max(self.workers, default=0) + 1, wait=False)
        until("the workers are ready", lambda: len(self.workers_ready()) == count)
        return sorted(self.workers)

    @contextmanager
    def frozen(self, number: int) -> Iterator[None]:
        """A worker that does nothing meanwhile, as one on a stalled machine: SIGSTOP, then SIGCONT."""
        popen = self.workers[number].popen
        popen.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            popen.send_signal(signal.SIGCONT)

    def kill_web(self, *, master: bool = True) -> None:
        """SIGKILL all of web, or only the process that serves, which gunicorn's master then replaces."""
        web = self.stack.services["web"]
        serving = psutil.Process(web.popen.pid).children(recursive=True)
        if master:
            self._kill(web)
        for process in serving:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if master:
            del self.stack.services["web"]

    def start_web(self, *, wait: bool = True) -> None:
        self.stack.start("web")
        if wait:
            until("web answers", self.web_ready)

    def web_ready(self) -> bool:
        return self.web_answers("healthz")

    def web_answers(self, path: str) -> bool:
        try:
            return httpx.get(f"{self.stack.base_url}/{path}", timeout=10, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    # Engines

    def engine(self, name: str) -> Process:
        """`postgres` or `valkey`, as it runs now."""
        return next(process for process in self.stack.group._processes if process.name == name)

    def restart_postgres(self, *, down_s: float = 0.0) -> None:
        """An immediate shutdown, as a crash is one: no checkpoint, sessions cut; then recovery from the log."""
        old = self.engine("postgres")
        argv, log = _argv(old), old.log
        old.popen.send_signal(signal.SIGQUIT)
        old.popen.wait()
        self.stack.group.stop([old], grace_s=0)
        time.sleep(down_s)
        account = _owner(Path(argv[argv.index("-D") + 1]))
        self.stack.group.start(
            "postgres", argv, env=os.environ, cwd=self.stack.group.scratch, stop_signal=signal.SIGINT, account=account
        )
        until(f"PostgreSQL is back; see {log}", self._database_answers)

    def _database_answers(self) -> bool:
        try:
            psycopg.connect(self.owner_url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill_broker(self) -> list[str]:
        """SIGKILL: it keeps nothing on disk, so its messages are gone. Returns what `start_broker` needs."""
        old = self.engine("valkey")
        argv = _argv(old)
        self._kill(old)
        return argv

    def start_broker(self, argv: list[str]) -> None:
        group = self.stack.group
        group.start("valkey", argv, env=os.environ, cwd=Path(argv[-1]).parent, stop_signal=signal.SIGTERM)
        port = int(self.engines["CACHE_URL"].rpartition(":")[2].partition("/")[0])
        until("Valkey is back", lambda: _listening(port))

    # Inside

    def sql(self, query: str, *values: object) -> list[DictRow]:
        """Rows as the owner of the database sees them, all tenants'."""
        with psycopg.connect(self.owner_url, autocommit=True, row_factory=dict_row, connect_timeout=5) as connection:
            return connection.execute(query, values).fetchall()

    def python(self, *arguments: str, given: str = "") -> str:
        """The output of a Python module run in the cluster's environment. Raises CalledProcessError."""
        argv = [sys.executable, "-m", *arguments]
        env = {**self.stack.env, "DJANGO_SETTINGS_MODULE": "compaction_service.settings"}
        done = subprocess.run(argv, env=env, cwd=BASE_DIR, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def _kill(self, process: Process) -> None:
        process.popen.kill()
        process.popen.wait()
        self.stack.group.stop([process], grace_s=0)


@contextmanager
def running_cluster(data_dir: Path, given: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Web and beat on engines of their own, no worker yet. `given` may bring a BROKER_URL.

    The engines are durable, unlike those of other tests: what was committed must outlive an immediate shutdown.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    ours = (*environment.SECRETS, *environment.ROLES, *environment.DEFAULTS, "DATABASE_URL", "BROKER_URL", "CACHE_URL")
    environ = {**{name: value for name, value in os.environ.items() if name not in ours}, **(given or {})}
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        group = opened.enter_context(ProcessGroup(data_dir / "log"))
        engines = opened.enter_context(running_engines(environ, data_dir, group))
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        env = {**environ, **environment.complete(environ, engines, {})}
        stack = Stack(base_url, listener, env, data_dir, group)
        stack.manage("setup_local", base_url, str(data_dir / ACCOUNTS))
        cluster = Cluster(stack, engines, ExitStack())
        try:
            for service in ("web", "beat"):
                stack.start(service)
            until("the service is ready", lambda: cluster.web_answers("readyz"))
            yield cluster
        finally:
            for number in list(cluster.workers):
                cluster.kill_worker(number)
            cluster.opened.close()
            group.stop(list(stack.services.values()), grace_s=10)


def _argv(process: Process) -> list[str]:
    return [str(word) for word in process.popen.args]  # type: ignore[union-attr]


def _owner(folder: Path) -> Account | None:
    """PostgreSQL does not run as root: then as who owns its files."""
    found = folder.stat()
    return Account(found.st_uid, found.st_gid) if os.geteuid() == 0 else None


def _listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
