"""The web process's entry point: `gunicorn compaction_service.wsgi`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compaction_service.settings")

django.setup(set_prefix=False)

from compaction_service.api.wsgi import Handler  # noqa: E402  (needs the settings)

application = Handler()

from compaction_service.checks import assert_safe_to_serve  # noqa: E402  (needs the app registry)
from compaction_service.compactions import wakeup  # noqa: E402
from compaction_service.tokens import encodings  # noqa: E402

assert_safe_to_serve()
encodings.warm()  # half a second that the first append would wait for
wakeup.warm()
