"""Settings of the web server, for `gunicorn -c python:compaction_service.gunicorn` here and in containers."""

from __future__ import annotations

import os
import threading
from typing import Any

# Requests wait for the database, so threads overlap; Python runs one of them at a time, so more processes
# (WEB_CONCURRENCY) use more cores, each with its own pool of as many connections as threads.
worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY", "1"))
threads = int(os.environ.get("DATABASE_POOL_SIZE", "16"))
bind = f"0.0.0.0:{os.environ.get('PORT', '8000')}"  # the container's own interfaces; `up` overrides it
timeout = 90  # above the longest `wait` of 60 s; a process that is stuck longer is replaced
graceful_timeout = 30  # a stop lets running requests finish; a waiting one is told at once that nothing changed
limit_request_line = 8190  # the most it allows; a longer one is refused by the server itself
keepalive = 75  # above the idle time of common proxies, so that they close first
control_socket_disable = True  # a socket in the home folder, shared by every stack of a user
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  # heartbeats off the disk


def post_worker_init(_worker: Any) -> None:
    """Load what only an append needs while the first requests are answered: one that comes early waits for the rest."""
    threading.Thread(target=_warm, name="warm", daemon=True).start()


def _warm() -> None:
    from compaction_service.compactions import wakeup
    from compaction_service.tokens import encodings

    encodings.warm()
    wakeup.warm()
