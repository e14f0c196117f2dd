"""Holding a request until a compaction is done, without holding a connection or too many of the server's threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25  # seconds between looks
_seats = threading.BoundedSemaphore(settings.WAITING_REQUESTS)


def wait_until(look: Callable[[], T | None], seconds: float) -> T | None:
    """What `look` gives once it gives something, or None when `seconds` are over.

    `look` is called at once, and again after short pauses. When all waiting seats are taken the request does not wait.
    """
    found = look()
    if found is not None or seconds <= 0 or not _seats.acquire(blocking=False):
        return found
    try:
        deadline, pause = time.monotonic() + seconds, FIRST_PAUSE
        while found is None and time.monotonic() < deadline:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(LONGEST_PAUSE, pause * 1.5)
            found = look()
        return found
    finally:
        _seats.release()
