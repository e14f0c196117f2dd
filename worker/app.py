"""The Celery application. A message is a wake-up; the rows are the work (docs/design.md, The job).

Run: `celery -A worker.app worker --pool threads -c 96 --without-gossip --without-mingle`, and one
`celery -A worker.app beat`.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compaction_service.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402
from prometheus_client import start_http_server  # noqa: E402

from compaction_service.compactions import broker  # noqa: E402
from worker import limits, stopping  # noqa: E402

app = Celery("compaction_service", broker=settings.BROKER_URL, task_cls="worker.requests:Task")
app.conf.update(
    include=["worker.tasks"],
    **broker.queue_settings(settings.BROKER_URL),  # no result backend: state is in the database
    task_serializer="json",
    accept_content=["json"],
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,  # nobody steers workers by message; pidbox replies would pile up in Redis
    worker_send_task_events=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,  # a lost broker costs no finished call
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,  # however long it is away: a worker that gives up helps nobody
    broker_transport_options=broker.worker_options(settings.BROKER_URL, redelivery=settings.BROKER_REDELIVERY),
    visibility_timeout=settings.BROKER_REDELIVERY,
    timezone="UTC",
    beat_schedule={
        "sweep": {"task": "compactions.sweep", "schedule": limits.SWEEP, "options": {"expires": 5}},
        "purge": {"task": "idempotency.purge", "schedule": limits.PURGE, "options": {"expires": limits.PURGE}},
        "expire": {"task": "conversations.expire", "schedule": limits.EXPIRE, "options": {"expires": limits.EXPIRE}},
    },
    beat_schedule_filename=os.environ.get("BEAT_SCHEDULE", "/tmp/compaction-beat-schedule"),  # noqa: S108 -- holds no data
)


@signals.worker_init.connect
def _prepare(**_: Any) -> None:
    """Refuse to work on unsafe settings, and load what is slow to load once, before the first wake-up."""
    from compaction_service.checks import assert_safe_to_serve
    from compaction_service.llm.client import preload
    from compaction_service.tokens import encodings

    try:
        assert_safe_to_serve()
        limits.check()
        if settings.WORKER_METRICS_PORT:
            start_http_server(settings.WORKER_METRICS_PORT)
    except (ImproperlyConfigured, ValueError, OSError, OverflowError) as error:
        raise SystemExit(f"The worker will not start: {error}") from None  # Celery logs an Exception and goes on
    encodings.warm()
    # Extractive passes need no model: they must not wait for the seconds that this import takes.
    threading.Thread(target=preload, name="preload", daemon=True).start()


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Celery's own set-up would replace the project's log format."""


@signals.worker_shutting_down.connect
def _stop(**_: Any) -> None:
    """SIGTERM: passes that run may end; after a while they are handed back (worker/stopping.py)."""
    stopping.begin(settings.WORKER_GRACE)
