"""What a key looks like and how it is checked.

`ck_<prefix>_<secret>` for a tenant's key, `cp_<prefix>_<secret>` for one of the platform. The prefix finds the row; the
secret has 256 bits. Stored is HMAC-SHA256 of the whole key under a numbered pepper, so that a copy of the database is
worth nothing without the pepper, and peppers can be changed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

TENANT, PLATFORM = "ck", "cp"
_SHAPE = re.compile(r"(ck|cp)_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_NOTHING = bytes(32)


class NewKey(NamedTuple):
    """A key as it is handed out, and the columns that are stored of it."""

    secret: str
    prefix: str
    digest: bytes
    pepper: int


def generate(kind: str) -> NewKey:
    """A new key under the newest pepper. Raises ImproperlyConfigured without peppers."""
    if not settings.KEY_PEPPERS:
        raise ImproperlyConfigured("KEY_PEPPERS is not set.")
    prefix = secrets.token_hex(6)
    secret = f"{kind}_{prefix}_{secrets.token_urlsafe(32)}"
    pepper = next(reversed(settings.KEY_PEPPERS))
    return NewKey(secret, prefix, _digest(secret, pepper), pepper)


def prefix_of(secret: str, kind: str) -> str | None:
    """The look-up prefix of what has the shape of a key of this kind, else None."""
    match = _SHAPE.fullmatch(secret)
    return match[2] if match and match[1] == kind else None


def matches(secret: str, digest: bytes | memoryview | None, pepper: int | None) -> bool:
    """Whether `secret` is the key stored as (digest, pepper). The work is the same where no row was found."""
    known = digest is not None and pepper in settings.KEY_PEPPERS
    number = pepper if known and pepper is not None else next(reversed(settings.KEY_PEPPERS))
    return hmac.compare_digest(_digest(secret, number), bytes(digest) if known and digest else _NOTHING) and known


def _digest(secret: str, pepper: int) -> bytes:
    return hmac.digest(settings.KEY_PEPPERS[pepper].encode(), secret.encode(), hashlib.sha256)
