"""The environment of a local stack: what the caller set, what the engines gave, and secrets made once.

Kept as KEY=VALUE lines in `<data_dir>/local.env`, where the settings find what the environment lacks, so that every
`manage.py` command works beside a running stack.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from cryptography.fernet import Fernet
from psycopg.conninfo import conninfo_to_dict

from compaction_service.local.errors import StackError

FILE = "local.env"
# Read back from the file of the run before: sessions, keys and encrypted columns must outlive a restart.
SECRETS = ("SECRET_KEY", "KEY_PEPPERS", "ENCRYPTION_KEYS")
ROLES = {"APP_DATABASE_URL": "app", "PLATFORM_DATABASE_URL": "platform"}
DEFAULTS = {
    "DEBUG": "false",
    "ALLOWED_HOSTS": "127.0.0.1,localhost",
    "ALLOW_LOCAL_MODEL_URLS": "true",
    "WORKER_GRACE": "25",
}
NAME_BYTES = 50  # leaves room for the role's ending in PostgreSQL's 63 bytes


def complete(environ: Mapping[str, str], engines: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Every variable the settings need. `environ` wins, then the engines' URLs, then `kept` secrets, then new ones.

    A role without a URL is named after the database (`compaction_app`), so that stacks and test runs which share a
    cluster never change each other's passwords.
    """
    values = dict(engines)
    made = {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "KEY_PEPPERS": f"1:{secrets.token_urlsafe(32)}",
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    }
    for name in SECRETS:
        values[name] = environ.get(name) or kept.get(name) or made[name]
    for name, role in ROLES.items():
        values[name] = environ.get(name) or _role_url(values["DATABASE_URL"], role, kept.get(name, ""))
    for name, default in DEFAULTS.items():
        values[name] = environ.get(name) or default
    if not values["WORKER_GRACE"].isdecimal():
        raise StackError("WORKER_GRACE must be a whole number of seconds.")
    return values


def read(path: Path) -> dict[str, str]:
    """The values of an environment file; empty without one."""
    if not path.exists():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: value for name, _, value in pairs}


def write(path: Path, values: Mapping[str, str]) -> None:
    """Replace the file in one step; only its owner may read it."""
    write_private(path, "".join(f"{name}={value}\n" for name, value in values.items()))


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 600 so that a reader sees the old text or the new, never a part."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    part.replace(path)


def _role_url(owner_url: str, role: str, kept_url: str) -> str:
    """The owner's URL with the role's name, and the password it had before if it is still the same role."""
    parts = {name: str(value) for name, value in conninfo_to_dict(owner_url).items()}
    database = parts.pop("dbname", "")
    if not database:
        raise StackError("DATABASE_URL names no database.")
    user = f"{database.encode()[:NAME_BYTES].decode(errors='ignore')}_{role}"
    kept = conninfo_to_dict(kept_url)
    password = str(kept.get("password") or "") if kept.get("user") == user else ""
    parts.pop("user", None)
    parts.pop("password", None)
    query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in parts.items())
    login = f"{quote(user, safe='')}:{password or secrets.token_urlsafe(24)}"
    return f"postgresql://{login}@/{quote(database, safe='')}" + (f"?{query}" if query else "")
