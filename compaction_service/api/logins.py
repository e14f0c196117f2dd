"""Guessing of the admin's passwords: after a few wrong ones, a name and an address wait. Counted in Redis.

Without Redis nobody is refused: operators must reach the admin when things are away, and passwords are hashed slowly.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

logger = logging.getLogger(__name__)

PATH = "/admin/login/"
MOST_BY_NAME, MOST_BY_ADDRESS = 10, 50  # wrong passwords in WAIT; many people may share an address
WAIT = 900  # seconds since the first of them


class LoginThrottle:
    """429 for a login after too many wrong ones. A login that succeeds forgets those of its name."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info != PATH or request.method != "POST":
            return self.get_response(request)
        limits = self._limits(request)
        if any(_failures(key) >= most for key, most in limits.items()):
            logger.warning("login throttled")
            text = "Too many wrong passwords. Try again later."
            return HttpResponse(text, status=429, content_type="text/plain", headers={"Retry-After": str(WAIT)})
        response = self.get_response(request)
        if response.status_code == 302:
            _forget(next(iter(limits)))
        elif response.status_code == 200:  # the form again
            for key in limits:
                _add(key)
        return response

    def _limits(self, request: HttpRequest) -> dict[str, int]:
        # Names are hashed: what somebody types into the wrong field may be a password.
        name = hashlib.sha256(request.POST.get("username", "").casefold().encode(errors="replace")).hexdigest()[:32]
        return {f"login:name:{name}": MOST_BY_NAME, f"login:address:{request.META.get('REMOTE_ADDR')}": MOST_BY_ADDRESS}


def _failures(key: str) -> int:
    from compaction_service.api import cache

    try:
        found = cache.client().get(key)
    except cache.AWAY:
        return 0
    return int(found) if isinstance(found, (bytes, str)) else 0


def _add(key: str) -> None:
    from compaction_service.api import cache

    try:
        with cache.client().pipeline() as both:
            both.incr(key)
            both.expire(key, WAIT, nx=True)
            both.execute()
    except cache.AWAY:
        logger.warning("wrong password not counted: cache away")


def _forget(key: str) -> None:
    from compaction_service.api import cache

    try:
        cache.client().delete(key)
    except cache.AWAY:
        return
