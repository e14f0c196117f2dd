"""Typed readers of the environment. A setting NAME is looked for in this order: the variable NAME, the file named by
NAME_FILE (a mounted secret), the line NAME=... of `.data/local.env` (written by the local stack). Bad input raises
`EnvError` naming the variable and never its value, which may be a secret.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL_ENV = BASE_DIR / ".data" / "local.env"

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class EnvError(Exception):
    """A variable that cannot be used; the message says which and why."""


@cache
def _local_values() -> dict[str, str]:
    """The KEY=VALUE lines of `.data/local.env`; empty without the file. Blank lines and # comments are skipped."""
    if not LOCAL_ENV.is_file():
        return {}
    lines = (line.strip() for line in LOCAL_ENV.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def text(name: str, default: str = "") -> str:
    """The value of NAME, stripped; `default` where it is missing or blank."""
    value, path = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if value and path:
        raise EnvError(f"Set {name} or {name}_FILE, not both.")
    if path:
        try:
            value = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise EnvError(f"{name}_FILE cannot be read: {type(exc).__name__}.") from exc
    value = (value or "").strip() or _local_values().get(name, "")
    return value or default


def strings(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list, blanks dropped."""
    parts = [part.strip() for part in text(name).split(",")]
    return [part for part in parts if part] or list(default)


def integer(name: str, default: int, *, minimum: int = 0) -> int:
    """A whole number of at least `minimum`."""
    value = text(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError as exc:
        raise EnvError(f"{name} must be a whole number.") from exc
    if number < minimum:
        raise EnvError(f"{name} must be at least {minimum}.")
    return number


def boolean(name: str, *, default: bool = False) -> bool:
    """One of 1/0, true/false, yes/no, on/off, in any case."""
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise EnvError(f"{name} must be true or false.")


def peppers(name: str) -> dict[int, str]:
    """Numbered secrets, `1:secret,2:secret`, newest last: {1: secret, 2: secret} in that order."""
    found: dict[int, str] = {}
    for part in strings(name):
        number, _, secret = part.partition(":")
        if not number.isascii() or not number.isdigit() or not secret:
            raise EnvError(f"{name} must look like 1:secret,2:secret.")
        if int(number) in found:
            raise EnvError(f"{name} has the number {int(number)} twice.")
        found[int(number)] = secret
    return found


def database(name: str) -> dict[str, Any] | None:
    """A Django DATABASES entry from a PostgreSQL URL (Unix sockets: `postgresql:///db?host=/path`), or None.

    What the URL says beyond host, port, user, password and database (sslmode, connect_timeout, ...) goes to OPTIONS.
    """
    url = text(name)
    if not url:
        return None
    try:
        options: dict[str, Any] = dict(conninfo_to_dict(url))
    except ProgrammingError as exc:
        raise EnvError(f"{name} is not a PostgreSQL URL.") from exc
    if not options.get("dbname"):
        raise EnvError(f"{name} names no database.")
    entry = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": options.pop("dbname"),
        "USER": options.pop("user", ""),
        "PASSWORD": options.pop("password", ""),
        "HOST": options.pop("host", ""),
        "PORT": str(options.pop("port", "")),
    }
    # A host that does not answer must become a 503, not a request that hangs for minutes.
    return {**entry, "OPTIONS": {"connect_timeout": 5, **options}}
