"""The web process's entry point: `gunicorn compaction_service.wsgi`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compaction_service.settings")

django.setup(set_prefix=False)

from compaction_service.api.wsgi import Handler  # noqa: E402  (needs the settings)

application = Handler()

from django.urls import get_resolver  # noqa: E402

from compaction_service.checks import assert_safe_to_serve  # noqa: E402  (needs the app registry)

assert_safe_to_serve()
_ = get_resolver().url_patterns  # the views, which the first request would wait for
