"""Provider keys at rest: Fernet under the newest of ENCRYPTION_KEYS, readable under any of them."""

from __future__ import annotations

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def valid_keys() -> bool:
    """Whether every one of ENCRYPTION_KEYS is a Fernet key."""
    try:
        return all(Fernet(key) for key in settings.ENCRYPTION_KEYS)
    except ValueError:
        return False


def _box() -> MultiFernet:
    if not settings.ENCRYPTION_KEYS:
        raise ImproperlyConfigured("ENCRYPTION_KEYS is not set.")
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def encrypt(secret: str) -> bytes:
    """Raises ImproperlyConfigured without keys."""
    return _box().encrypt(secret.encode())


def decrypt(token: bytes | memoryview) -> str:
    """Raises cryptography.fernet.InvalidToken where none of the keys fits."""
    return _box().decrypt(bytes(token)).decode()


def rotate(token: bytes | memoryview) -> bytes:
    """The same secret under the newest key. Raises cryptography.fernet.InvalidToken where none of the keys fits."""
    return _box().rotate(bytes(token))
