"""The service in this process, and what a run tells at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compaction_service.registry import services
from compaction_service.registry.models import Model, Source
from tenants.scope import platform_scope
from tests.bench.figures import Figure, write
from tests.inprocess import clock, model, models, service  # noqa: F401  (fixtures)

FIGURES = pytest.StashKey[dict[str, Any]]()


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str, Any], None]:
    """Tells a figure of the run: shown at its end, and kept in `.data/bench.json`."""
    return lambda name, value: pytestconfig.stash.setdefault(FIGURES, {}).__setitem__(name, value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := config.stash.get(FIGURES, None):
        for name, value in figures.items():
            terminalreporter.write_line(f"{name}: {json.dumps(value)}")
        write({name: Figure(value.pop("value"), "count", "= 0", value) for name, value in figures.items()})


@pytest.fixture(autouse=True)
def _registry_as_it_was(db: None) -> Iterator[None]:
    """The registry belongs to no tenant: what a run changed of it would be seen by other tests."""
    yield
    with platform_scope():
        for name in Model.objects.filter(source=Source.OVERRIDE).values_list("name", flat=True):
            services.override_clear(name)
