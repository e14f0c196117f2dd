"""Ids: UUIDv7, so that the order of ids is the order of creation and an index grows at its end only."""

from __future__ import annotations

import uuid

from uuid_utils.compat import uuid7 as _uuid7


def uuid7() -> uuid.UUID:
    """A new time-ordered id (a plain `uuid.UUID`)."""
    return _uuid7()
