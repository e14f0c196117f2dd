"""The service in this process, and what a run tells at its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inprocess import clock, model, models, service  # noqa: F401  (fixtures)

FIGURES = pytest.StashKey[dict[str, Any]]()
PATH = Path(__file__).resolve().parents[2] / ".data" / "fuzz.json"


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str, Any], None]:
    """Tells a figure of the run: shown at its end, and kept in `.data/fuzz.json`."""
    return lambda name, value: pytestconfig.stash.setdefault(FIGURES, {}).__setitem__(name, value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := config.stash.get(FIGURES, None):
        for name, value in figures.items():
            terminalreporter.write_line(f"{name}: {json.dumps(value)}")
        PATH.parent.mkdir(exist_ok=True)
        kept = json.loads(PATH.read_text()) if PATH.exists() else {}
        PATH.write_text(json.dumps({**kept, **figures}, indent=2) + "\n")
