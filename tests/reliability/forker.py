"""Worker processes at a tenth of their cost: `python -m tests.reliability.forker`, one JSON line for each on stdin.

A worker imports for five seconds of CPU before it takes its first message, and a run of kills starts hundreds. This
process imports the same modules once, opens nothing, and forks: what runs in the child is the `celery` command itself,
with its own connections, threads and process id. Answers with the child's id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORTED = (
    "celery.__main__",
    "celery.bin.celery",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "kombu.transport.redis",
    "worker.app",
    "worker.tasks",
)


class Forked:
    """A forked worker under the part of Popen's interface that its users need. Not our child: it has no exit code."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("worker", timeout or 0)
            time.sleep(0.01)
        return 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forker:
    """The process that forks, seen from the test."""

    def __init__(self, env: Mapping[str, str], cwd: Path, log: Path, process_group: int) -> None:
        with log.open("wb") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.reliability.forker"],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                process_group=process_group,
            )
        self._lock = threading.Lock()

    def fork(self, argv: Sequence[str], log: Path) -> Forked:
        """Run `celery *argv` in a new process; its output goes to `log`."""
        stdin, stdout = self._popen.stdin, self._popen.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(json.dumps({"argv": list(argv), "log": str(log)}) + "\n")
            stdin.flush()
            answer = stdout.readline()
        assert answer, f"the forker has ended; see {log.parent}"
        return Forked(int(answer))

    def close(self) -> None:
        self._popen.kill()
        self._popen.communicate()


def main() -> None:
    for name in IMPORTED:
        import_module(name)
    from compaction_service.llm.client import preload
    from compaction_service.tokens import encodings

    encodings.warm()
    preload()
    assert threading.active_count() == 1, threading.enumerate()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # killed children leave no zombies
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(asked)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def _become(asked: Any) -> None:
    """The child: the command line, as its console script runs it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for given, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(given, number)
    sys.argv = ["celery", *asked["argv"]]
    code: Any = 1
    try:
        from celery.__main__ import main as command

        command()
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
