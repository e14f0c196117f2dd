"""The process's connections to the cache (Redis). Imported where it is asked: loading its library takes long."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT = 0.1  # seconds; a slow Redis must not slow an append
AWAY = (RedisError, OSError)  # what a cache that does not answer raises


@cache
def client() -> Redis:
    """Short timeouts, no retries."""
    return Redis.from_url(
        settings.CACHE_URL, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
    )
