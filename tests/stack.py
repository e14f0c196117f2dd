"""Early pytest plugin (`-p tests.stack`): engines, a new database and its environment, before settings are read.

DATABASE_URL, BROKER_URL and CACHE_URL of the caller are used where set; the rest is started from wheels in a
folder of its own. The database is new in every run, roles included, so runs on one cluster do not meet. Of a run in
several processes each has all of it, but for the one that hands the tests out.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from compaction_service.local import environment, roles
from compaction_service.local.engines import running_engines
from compaction_service.local.processes import ProcessGroup, tail

DATA_DIR = pytest.StashKey[Path]()
OPEN = pytest.StashKey[ExitStack]()
# Roles and secrets are always the run's own; a developer's would reach their data.
OWN = (*environment.SECRETS, *environment.ROLES, *environment.DEFAULTS, "PORT")
TROUBLE = re.compile(r'"level": "(error|critical)"|\b(ERROR|CRITICAL)\b|^Traceback ', re.MULTILINE)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Runs before pytest-django's hook of this name, which imports the settings."""
    options = early_config.known_args_namespace
    hands_out = getattr(options, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ
    if not (options.help or options.version or options.collectonly or hands_out):
        opened = early_config.stash[OPEN] = ExitStack()
        try:
            early_config.stash[DATA_DIR] = opened.enter_context(_data_dir())
            os.environ.update(opened.enter_context(_environment(early_config.stash[DATA_DIR])))
        except BaseException:
            opened.close()
            raise
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    if opened := config.stash.get(OPEN, None):
        opened.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows the end of every service log with an error in it: a test may pass while a process complains."""
    if DATA_DIR not in config.stash:
        return
    for log in sorted(config.stash[DATA_DIR].glob("live/log/*.log")):
        if TROUBLE.search(log.read_text(errors="replace")):
            terminalreporter.section(f"errors in {log.name}")
            terminalreporter.write_line(tail(log))


@contextmanager
def _data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="compaction-tests-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(data_dir: Path) -> Iterator[dict[str, str]]:
    for name in OWN:
        os.environ.pop(name, None)
    with (
        ProcessGroup(data_dir / "log") as group,
        running_engines(os.environ, data_dir, group, durable=False) as engines,
    ):
        owner_url = changed(engines["DATABASE_URL"], dbname=f"compaction_test_{os.getpid()}")
        values = environment.complete({}, {**engines, "DATABASE_URL": owner_url}, {})
        try:
            yield values
        finally:
            logins = (roles.role_of(name, values[name]) for name in environment.ROLES)
            roles.drop_database_and_roles(owner_url, *logins)


def changed(url: str, **parameters: str) -> str:
    """A PostgreSQL URL with other parameters, such as `dbname`."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()} | parameters
    return "postgresql:///?" + "&".join(f"{name}={quote(value, safe='/')}" for name, value in parts.items())
