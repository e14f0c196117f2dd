"""The broker's own state, as a Redis client sees it."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from compaction_service.compactions.broker import QUEUE
from compaction_service.compactions.wakeup import TASK
from tests.reliability.cluster import Cluster

PAUSE_MS = 120_000


def client(cluster: Cluster) -> redis.Redis:
    return redis.Redis.from_url(cluster.engines["BROKER_URL"], socket_timeout=10)


@contextmanager
def writes_paused(cluster: Cluster) -> Iterator[None]:
    """No write gets through, acknowledgements included; what a client that is gone had sent is dropped."""
    with client(cluster) as one:
        one.execute_command("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
        try:
            yield
        finally:
            one.execute_command("CLIENT", "UNPAUSE")


@contextmanager
def frozen(cluster: Cluster) -> Iterator[None]:
    """A broker that takes connections and answers nothing."""
    popen = cluster.engine("valkey").popen
    popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        popen.send_signal(signal.SIGCONT)


def unacknowledged(cluster: Cluster) -> list[bytes]:
    """Wake-ups that were delivered and not acknowledged."""
    with client(cluster) as one:
        found = [json.loads(entry) for entry in one.hvals("unacked")]
    return [
        json.dumps(message).encode() for message, _, key in found if key == QUEUE and message["headers"]["task"] == TASK
    ]


def redeliver(cluster: Cluster, messages: list[bytes]) -> None:
    """What the broker does by itself once the visibility timeout is over."""
    with client(cluster) as one:
        for message in messages:
            one.lpush(QUEUE, message)


def multiply(cluster: Cluster, times: int, *, reorder: int) -> int:
    """Every waiting message so many times, in an order of this seed; how many wait then."""
    with client(cluster) as one:
        waiting = one.lrange(QUEUE, 0, -1) * times
        random.Random(reorder).shuffle(waiting)  # noqa: S311 -- repeatable
        if waiting:
            one.lpush(QUEUE, *waiting)
        return int(one.llen(QUEUE))


def waiting(cluster: Cluster) -> int:
    """Messages nobody has taken yet."""
    with client(cluster) as one:
        return int(one.llen(QUEUE))


def flush(cluster: Cluster) -> None:
    with client(cluster) as one:
        one.flushall()
