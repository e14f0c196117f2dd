"""Child processes of the local stack: started with a log file each, watched, and stopped together.

All children share one process group. A guard process holds the read end of a pipe whose write end only this process
has: however this process ends, `kill -9` included, the guard sees the end of the pipe and ends the group. That works on
Linux and macOS alike, where PR_SET_PDEATHSIG would not.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from compaction_service.local.errors import StackError

TAIL_LINES = 30
POLL_S = 0.05
GUARD_GRACE_S = 10
# `read` returns when the pipe closes. TERM lets web and worker finish; what is left after the grace period is killed.
GUARD_SCRIPT = f"trap '' TERM INT HUP; read -r _; kill -TERM 0; sleep {GUARD_GRACE_S}; rm -rf \"$0\"; kill -KILL 0"


@dataclass(frozen=True)
class Account:
    """The system user a child runs as."""

    uid: int
    gid: int


class Process:
    """One child and its log file."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path, stop_signal: int) -> None:
        self.name = name
        self.popen = popen
        self.log = log
        self._stop_signal = stop_signal

    def check(self) -> None:
        """Raise StackError if it has ended."""
        if self.popen.poll() is not None:
            raise StackError(self.last_words())

    def last_words(self) -> str:
        return f"{self.name} ended with exit code {self.popen.returncode}. The end of {self.log}:\n{tail(self.log)}"

    def ask_to_stop(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(self._stop_signal)

    def wait(self, deadline: float) -> None:
        """Wait for its end until `deadline` (time.monotonic), then kill it."""
        try:
            self.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class ProcessGroup:
    """The children of one stack. Leaving the context stops them all, last started first.

    `scratch` is a folder with a short path for the sockets of the children; it goes when they go.
    """

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self.scratch = Path(tempfile.mkdtemp(prefix="compaction-"))
        self._processes: list[Process] = []
        log_dir.mkdir(parents=True, exist_ok=True)
        # A group of its own: Ctrl-C at a terminal reaches this process only, which then stops the children in order.
        guard = ["/bin/sh", "-c", GUARD_SCRIPT, str(self.scratch)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, process_group=0)  # noqa: S603

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop(self._processes, grace_s=GUARD_GRACE_S)
        self._guard.kill()
        self._guard.communicate()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stop_signal: int,
        account: Account | None = None,
        inherit: Sequence[int] = (),
    ) -> Process:
        """Start a child whose output goes to `<log_dir>/<name>.log`; the log of the run before stays as `.log.1`.

        `inherit` names file descriptors that the child gets under the same numbers.
        """
        log = self.log_dir / f"{name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        with log.open("wb") as output:
            popen = subprocess.Popen(  # noqa: S603
                argv,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=inherit,
                process_group=self._guard.pid,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        process = Process(name, popen, log, stop_signal)
        self._processes.append(process)
        return process

    def run(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        """Start a child and wait for its end. Raises StackError unless it succeeds."""
        process = self.start(name, argv, env=env, cwd=cwd, stop_signal=signal.SIGTERM)
        code = process.popen.wait()
        self._processes.remove(process)
        if code:
            raise StackError(process.last_words())

    def stop(self, processes: Sequence[Process], *, grace_s: float) -> None:
        """Ask these children to stop, last started first; kill what is still there after `grace_s` seconds."""
        deadline = time.monotonic() + grace_s
        chosen = [process for process in reversed(self._processes) if process in processes]
        for process in chosen:
            process.ask_to_stop()
        for process in chosen:
            process.wait(deadline)
        self._processes = [process for process in self._processes if process not in chosen]

    def check(self) -> None:
        """Raise StackError if any child has ended."""
        for process in self._processes:
            process.check()


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log file, for a person."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 64 * 1024))
        return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])
