"""The wake-up: a Celery message that says no more than "there is work". Losing one costs latency, never work."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from compaction_service.compactions import broker

if TYPE_CHECKING:
    from celery import Celery

logger = logging.getLogger(__name__)

TASK = "compactions.run"
# A broker that hangs must not hold a client's append: it has been committed, and the sweep wakes a worker later.
CONNECT, ANSWER = 0.5, 1.0  # seconds
PAUSE = 1.0  # seconds; as long as a lost wake-up costs anyway
_ask_after = 0.0  # monotonic


@cache
def _sender() -> Celery:
    """A producer of its own: web processes import no task modules, and Celery itself once they serve."""
    from celery import Celery

    sender = Celery("wakeup", broker=settings.BROKER_URL)
    sender.conf.update(
        **broker.queue_settings(settings.BROKER_URL),
        # Opening a connection would be tried again for seconds, whatever `retry` says.
        broker_transport_options=broker.sender_options(settings.BROKER_URL, connect=CONNECT, answer=ANSWER),
        broker_connection_timeout=CONNECT,
    )
    return sender


def warm() -> None:
    """Load what the first wake-up needs, so that no client's append waits for it."""
    _ = _sender().amqp


def wake(count: int = 1, *, task: str = TASK, expires: float | None = None) -> None:
    """Send `count` wake-ups; a broker that is away is logged, not raised, and for PAUSE seconds not asked again.

    `expires`: seconds one is worth something.
    """
    global _ask_after  # noqa: PLW0603 -- shared by all requests of the process
    if time.monotonic() < _ask_after:
        return
    try:
        for _ in range(count):
            _sender().send_task(task, queue=broker.QUEUE, retry=False, ignore_result=True, expires=expires)
    except Exception as error:  # noqa: BLE001 -- any transport has its own; the database row is the truth
        _ask_after = time.monotonic() + PAUSE
        logger.warning("wake-up not sent", extra={"error": type(error).__name__})
