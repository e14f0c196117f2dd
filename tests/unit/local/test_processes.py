from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compaction_service.local.errors import StackError
from compaction_service.local.processes import Process, ProcessGroup
from compaction_service.local.stack import BASE_DIR

SLEEP = ["sleep", "60"]


@pytest.fixture
def group(tmp_path: Path) -> Iterator[ProcessGroup]:
    with ProcessGroup(tmp_path / "log") as group:
        yield group


def start(group: ProcessGroup, name: str, *argv: str, stop_signal: int = signal.SIGTERM) -> Process:
    return group.start(name, argv, env=os.environ, cwd=Path("/"), stop_signal=stop_signal)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] not in ("", "Z")


def test_check__all_children_run__is_silent(group: ProcessGroup) -> None:
    start(group, "one", *SLEEP)

    group.check()


def test_check__a_child_has_ended__names_it_with_its_last_lines(group: ProcessGroup) -> None:
    start(group, "good", *SLEEP)
    bad = start(group, "bad", "sh", "-c", "echo one; echo two >&2; exit 3")
    bad.popen.wait()

    with pytest.raises(StackError, match=r"^bad ended with exit code 3.*\none\ntwo$"):
        group.check()


def test_start__same_name_again__keeps_the_log_before(group: ProcessGroup) -> None:
    for word in ("first", "second"):
        start(group, "one", "echo", word).popen.wait()

    assert (group.log_dir / "one.log").read_text() == "second\n"
    assert (group.log_dir / "one.log.1").read_text() == "first\n"


def test_run__a_command_that_fails__raises_and_is_forgotten(group: ProcessGroup) -> None:
    with pytest.raises(StackError, match="job ended with exit code 1"):
        group.run("job", ["false"], env=os.environ, cwd=Path("/"))

    group.check()


def test_stop__a_child_that_ignores_the_signal__is_killed_after_the_grace(group: ProcessGroup) -> None:
    ready = group.log_dir / "stubborn.log"
    child = start(group, "stubborn", "sh", "-c", "trap '' TERM; echo ready; sleep 60; sleep 60")
    until(lambda: ready.read_text() == "ready\n")

    group.stop([child], grace_s=0.1)

    assert child.popen.returncode == -signal.SIGKILL


def test_leave__children_run__stops_each_with_its_own_signal(tmp_path: Path) -> None:
    with ProcessGroup(tmp_path) as group:
        children = [start(group, number.name, *SLEEP, stop_signal=number) for number in (signal.SIGTERM, signal.SIGINT)]

    assert [child.popen.returncode for child in children] == [-signal.SIGTERM, -signal.SIGINT]


def test_group__its_process_is_killed__the_guard_ends_the_children(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time; from pathlib import Path\n"
        "from compaction_service.local.processes import ProcessGroup\n"
        "group = ProcessGroup(Path(sys.argv[1]))\n"
        "child = group.start('c', ['sleep', '60'], env=os.environ, cwd=Path('/'), stop_signal=signal.SIGTERM)\n"
        "print(child.popen.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=BASE_DIR, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)

        parent.kill()

    until(lambda: not alive(child))
