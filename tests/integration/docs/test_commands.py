"""What the pages tell to type is typed.

A page's Python blocks run as one script, in a folder that looks like the project's beside `make up`. Console blocks
hold what serves until it is stopped, builds, or runs these tests; of those each command is tried as far as it goes
without doing that.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import get_commands

from compaction_service.local.management.commands.up import Command as Up
from compaction_service.local.stack import Stack
from tests.unit.docs.pages import PAGES, ROOT, blocks

RUNNING = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("quickstart.md", "api.md", "by-hand.md"))]
TOOLS = Path(sys.prefix) / "bin"
CONSOLE = sorted({command for page in PAGES for block in blocks(page) for command in block.commands})


@pytest.mark.timeout(240)  # the first one starts the service, and its worker loads what is slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.name)
def test_python__all_blocks_of_a_page__run_against_the_service(page: Path, live: Stack, tmp_path: Path) -> None:
    (tmp_path / ".data").symlink_to(live.data_dir)
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.text for block in blocks(page) if block.language == "python"))

    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks__of_a_page__are_of_a_kind_that_is_tried(page: Path) -> None:
    policies = {"json"} if page.name == "presets.md" else set()  # tried by tests/unit/docs/test_presets.py
    allowed = {"console", "text"} | policies | ({"python"} if page in RUNNING else set())
    assert {block.language for block in blocks(page)} <= allowed


@pytest.mark.parametrize("command", CONSOLE)
def test_console__each_command__could_be_run(command: str, tmp_path: Path) -> None:
    match shlex.split(command):
        case ["make", target, *_]:
            _run(["make", "--dry-run", target])
        case ["cp", source, target]:
            shutil.copy(ROOT / source, tmp_path)
            assert (ROOT / target).parent.is_dir()
        case ["docker", "compose", "-f", file, action, *rest]:
            _run([str(TOOLS / "docker-compose"), "-f", file, "config", "--quiet"])
            _run([str(TOOLS / "docker-compose"), "-f", file, action, "--help"])
            if "manage.py" in rest:
                assert rest[rest.index("manage.py") + 1] in get_commands()
        case _:
            pytest.fail(f"Nobody knows how to try: {command}")


def test_up__what_it_prints__is_what_the_readme_shows(live: Stack) -> None:
    shown = next(block.text for block in blocks(ROOT / "README.md") if "$ make up" in block.text)
    labels = [line[:12].strip() for line in shown.partition("$ make up\n")[2].splitlines()]
    out = StringIO()

    Up(stdout=out, no_color=True)._greet(live)

    printed = [line[:12].strip() for line in out.getvalue().splitlines() if line[:3].strip()]
    taken = printed[0] == "Port 8000"  # by another stack of this machine
    assert printed[taken : len(labels) + taken] == labels


def test_audit__advisories_out_of_reach__fails_and_says_that_nothing_was_checked() -> None:
    with socket.socket() as taken:  # bound and not listening: refuses at once, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"), nowhere)
        env = {**os.environ, **proxies, "NO_PROXY": "", "no_proxy": ""}
        # As it is: the environment that runs this test is not made anew.
        argv = ["make", "--assume-old", ".venv/.ready", "audit"]
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Advisories could not be reached: nothing was checked." in done.stderr


def _run(argv: list[str]) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
