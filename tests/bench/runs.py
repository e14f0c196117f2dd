"""Figures of whole runs, each in its own processes: the tests of isolation, and the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree as ET

from compaction_service.local.management.commands.demo import environment_of
from compaction_service.local.stack import BASE_DIR
from tests.bench.figures import Figure, Figures, rounded
from tests.bench.service import Bench


def isolation(_bench: Bench) -> Figures:
    """Tests of what one tenant could see or change of another's: how many failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "tests/integration/isolation", f"--junit-xml={report}"],
            cwd=BASE_DIR, env=environment_of(os.environ), stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # all passed, some failed; else the run did not get to its end
            raise RuntimeError(f"the tests of isolation ended with {done.returncode}")
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314  (written just now, by pytest)
    tests, failures, errors = (
        sum(int(suite.attrib[name]) for suite in suites) for name in ("tests", "failures", "errors")
    )
    return {"isolation_holes": Figure(failures + errors, "failed tests", "= 0", {"tests": tests})}


def demo(_bench: Bench) -> Figures:
    """`make demo` in an empty folder, its packages installed, and again: seconds to the end of each."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            begun = time.monotonic()
            subprocess.run(
                [sys.executable, "manage.py", "demo", "--data-dir", folder],
                cwd=BASE_DIR, env=environment_of(os.environ), stdout=subprocess.DEVNULL, check=True,
            )  # fmt: skip
            seconds.append(time.monotonic() - begun)
    detail = {"measured": "with the packages installed"}
    return {
        "demo_first_s": Figure(rounded(seconds[0]), "s", "<= 300", detail),
        "demo_again_s": Figure(rounded(seconds[1]), "s", "<= 60", detail),
    }
