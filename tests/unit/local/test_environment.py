from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from compaction_service.local import environment
from compaction_service.local.errors import StackError
from compaction_service.local.processes import ProcessGroup
from compaction_service.local.stack import Stack

ENGINES = {"DATABASE_URL": "postgresql://o:p@/compaction?host=/run/x", "BROKER_URL": "b", "CACHE_URL": "c"}


def test_complete__nothing_set__makes_roles_of_the_database_and_secrets() -> None:
    values = environment.complete({}, ENGINES, {})

    app = conninfo_to_dict(values["APP_DATABASE_URL"])
    assert (app["user"], app["dbname"], app["host"]) == ("compaction_app", "compaction", "/run/x")
    assert conninfo_to_dict(values["PLATFORM_DATABASE_URL"])["user"] == "compaction_platform"
    assert app["password"]
    assert app["password"] != conninfo_to_dict(values["PLATFORM_DATABASE_URL"])["password"]
    Fernet(values["ENCRYPTION_KEYS"])
    assert values["KEY_PEPPERS"].startswith("1:")


def test_complete__values_kept_from_before__keeps_them() -> None:
    before = environment.complete({}, ENGINES, {})

    assert environment.complete({}, ENGINES, before) == before


def test_complete__another_database__does_not_reuse_a_password() -> None:
    before = environment.complete({}, ENGINES, {})
    other = {**ENGINES, "DATABASE_URL": "postgresql://o:p@/other?host=/run/x"}

    app = conninfo_to_dict(environment.complete({}, other, before)["APP_DATABASE_URL"])

    assert app["user"] == "other_app"
    assert app["password"] != conninfo_to_dict(before["APP_DATABASE_URL"])["password"]


def test_complete__variables_set__wins_over_everything() -> None:
    given_values = {"SECRET_KEY": "mine", "APP_DATABASE_URL": "postgresql://me@/db", "DEBUG": "true"}

    values = environment.complete(given_values, ENGINES, {"SECRET_KEY": "old"})

    assert {name: values[name] for name in given_values} == given_values


@pytest.mark.parametrize("given_values", [{}, {"WORKER_GRACE": "40"}])
def test_stop__of_a_stack__leaves_its_worker_time_to_hand_back(given_values: dict[str, str], tmp_path: Path) -> None:
    told = environment.complete(given_values, ENGINES, {})  # the environment of the worker
    with socket.socket() as listener, ProcessGroup(tmp_path) as group:
        grace = Stack("http://127.0.0.1", listener, told, tmp_path, group).stop_grace_s

    assert int(told["WORKER_GRACE"]) == int(given_values.get("WORKER_GRACE", settings.WORKER_GRACE))
    assert grace > int(told["WORKER_GRACE"])


def test_complete__grace_is_no_number__is_refused() -> None:
    with pytest.raises(StackError, match="WORKER_GRACE"):
        environment.complete({"WORKER_GRACE": "soon"}, ENGINES, {})


@pytest.mark.parametrize("url", ["postgresql://owner@host/", "postgresql://"])
def test_complete__url_without_database__is_refused(url: str) -> None:
    with pytest.raises(StackError, match="names no database"):
        environment.complete({}, {**ENGINES, "DATABASE_URL": url}, {})


@given(name=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_complete__any_database_name__gives_urls_of_that_database_with_short_roles(name: str) -> None:
    url = f"postgresql://o@h:5433/{quote(name, safe='')}?sslmode=require"

    app = conninfo_to_dict(environment.complete({}, {**ENGINES, "DATABASE_URL": url}, {})["APP_DATABASE_URL"])

    assert (app["dbname"], app["host"], app["port"], app["sslmode"]) == (name, "h", "5433", "require")
    assert len(str(app["user"]).encode()) <= 63


def test_write__a_file__is_private_and_reads_back(tmp_path: Path) -> None:
    file = tmp_path / "local.env"
    environment.write(file, {"A": "1"})

    environment.write(file, {"A": "x=y", "B": ""})

    assert environment.read(file) == {"A": "x=y", "B": ""}
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
