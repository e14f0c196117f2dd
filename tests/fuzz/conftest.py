"""The service in this process, and what a run tells at its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from compaction_service.registry import services
from compaction_service.registry.models import Model, Source
from tenants.scope import platform_scope
from tests.bench import figures
from tests.inprocess import clock, model, models, service  # noqa: F401  (fixtures)

FIGURES = pytest.StashKey[figures.Figures]()


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[str, figures.Figure], None]:
    """Tells a figure of the run: shown at its end, and kept in `.data/bench.json`."""
    return pytestconfig.stash.setdefault(FIGURES, {}).__setitem__


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if told := config.stash.get(FIGURES, None):
        for name, figure in told.items():
            terminalreporter.write_line(f"{name}: {json.dumps(asdict(figure))}")
        figures.write(told)


@pytest.fixture(autouse=True)
def _registry_as_it_was(db: None) -> Iterator[None]:
    """The registry belongs to no tenant: what a run changed of it would be seen by other tests."""
    yield
    with platform_scope():
        for name in Model.objects.filter(source=Source.OVERRIDE).values_list("name", flat=True):
            services.override_clear(name)
