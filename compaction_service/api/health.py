"""Liveness, readiness and metrics, for machines that watch the service. No key needed; no tenant's data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps

import orjson
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST

from compaction_service.api import metrics as measured
from compaction_service.api.errors import JSON_TYPE
from compaction_service.api.handlers import answer, drop_broken_connections
from compaction_service.checks import assert_safe_role

View = Callable[[HttpRequest], HttpResponse]


def get_only(view: View) -> View:
    """A plain view that answers GET and HEAD, and 405 in the API's shape."""

    @wraps(view)
    def inner(request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return answer(405, "method_not_allowed", "Only GET is allowed here.", {"Allow": "GET, HEAD"})
        return view(request)

    return inner


@get_only
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers. Nothing else is asked: restarting it would not bring a database back."""
    return HttpResponse(b'{"status":"ok"}', content_type=JSON_TYPE)


@get_only
def readyz(_request: HttpRequest) -> HttpResponse:
    """`{"status": "ok" | "degraded" | "down", "down": [names]}`.

    503 when requests cannot be served: `database` away or `migrations` pending. Without `broker` or `cache` the
    service is degraded but serves (appends need the database only), so it stays ready: 200, and they are named.
    """
    # Migrations cannot be looked at without the database, and are not what is wrong then.
    down = ["database"] if not _database() else [] if _migrations() else ["migrations"]
    degraded = [name for name, check in (("broker", _broker), ("cache", _cache)) if not check()]
    status = "down" if down else "degraded" if degraded else "ok"
    body = orjson.dumps({"status": status, "down": down + degraded})
    return HttpResponse(body, status=503 if down else 200, content_type=JSON_TYPE)


@get_only
def metrics(_request: HttpRequest) -> HttpResponse:
    """Prometheus text of this process, or of all of them where PROMETHEUS_MULTIPROC_DIR is set."""
    return HttpResponse(measured.text(), content_type=CONTENT_TYPE_LATEST)


def _database() -> bool:
    """A query as the role of the application, which must be one that row-level security binds."""
    try:
        assert_safe_role()
        with connections["default"].cursor() as cursor:
            cursor.execute("select 1")
    except DatabaseError:
        drop_broken_connections()
        return False
    return True


@cache
def _files() -> frozenset[tuple[str, str]]:
    """The migrations this version of the code has."""
    return frozenset(MigrationLoader(None).disk_migrations)


def _migrations() -> bool:
    """Every migration of this code is applied; more than that is fine (an older version during a roll-out)."""
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("select app, name from django_migrations")
            return _files() <= set(cursor.fetchall())
    except DatabaseError:
        return False


def _broker() -> bool:
    from kombu import Connection

    try:
        with Connection(settings.BROKER_URL, connect_timeout=1) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=1)
    except Exception:  # noqa: BLE001  (kombu's transports raise errors of their own libraries)
        return False
    return True


def _cache() -> bool:
    from compaction_service.api import cache

    try:
        return bool(cache.client().ping())
    except cache.AWAY:
        return False
