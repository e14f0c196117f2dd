"""The service's WSGI application with one view more."""

from __future__ import annotations

from django.conf import settings

from compaction_service.wsgi import application

settings.ROOT_URLCONF = "tests.bench.urls"  # read at the first request

__all__ = ["application"]
