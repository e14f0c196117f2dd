"""Requests per minute of a tenant, counted in Redis in one round trip. Without Redis everything is let through."""

from __future__ import annotations

import logging
import math
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from compaction_service.api.errors import ApiError, limit_error
from tenants.limits import limits_of
from tenants.models import Tenant

logger = logging.getLogger(__name__)

WINDOW = 60
PAUSE = 2.0  # seconds without asking after a failure, so that not every request waits for the timeout

# Counts and sets the expiry in one step: a counter without one would throttle for ever.
_COUNT = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n"


class TenantThrottle(BaseThrottle):
    """429 with Retry-After once a tenant has used up its minute. Tenants without a limit cost nothing."""

    _ask_after = 0.0  # monotonic; shared by all requests of the process

    def __init__(self) -> None:
        self._wait: float | None = None

    def allow_request(self, request: Request, _view: object) -> bool:
        tenant = request.user.tenant  # type: ignore[union-attr]
        allowed = limits_of(tenant.limits).requests_per_minute
        if allowed is None or not settings.CACHE_URL or time.monotonic() < TenantThrottle._ask_after:
            return True
        from compaction_service.api import cache

        minute, elapsed = divmod(time.time(), WINDOW)
        try:
            used = cache.client().eval(_COUNT, 1, f"rate:{tenant.id}:{int(minute)}", str(2 * WINDOW))
        except cache.AWAY as exc:
            TenantThrottle._ask_after = time.monotonic() + PAUSE
            logger.warning("rate limits off: cache away", extra={"error": type(exc).__name__})
            return True
        self._wait = WINDOW - elapsed
        return int(str(used)) <= allowed

    def wait(self) -> float | None:
        """Seconds until the next window; at least one."""
        return max(1.0, self._wait) if self._wait else None


def throttled(tenant: Tenant, wait: float | None) -> ApiError:
    """429: what is used up, and when that ends."""
    seconds = math.ceil(wait or 1)
    most = limits_of(tenant.limits).requests_per_minute
    return limit_error(
        429, "throttled", f"The tenant may make {most} requests a minute, and has.", "requests_per_minute", most,
        ends_at=timezone.now() + timedelta(seconds=seconds), headers={"Retry-After": str(seconds)},
    )  # fmt: skip
