"""Messages in the hands of a worker."""

from __future__ import annotations

from typing import Any

import celery
from celery.worker import request


class Request(request.Request):
    """One that may be acknowledged on a connection that is gone.

    A late acknowledgement after the broker was away goes to a channel that has lost its connection. kombu then raises
    an AttributeError, which Celery does not know as an error of connections: the worker stopped for good. Nothing is
    lost with the acknowledgement: a redelivered wake-up finds no due row.
    """

    def __init__(self, message: Any, *, connection_errors: Any = None, **options: Any) -> None:
        super().__init__(message, connection_errors=(*(connection_errors or ()), AttributeError), **options)


class Task(celery.Task):  # type: ignore[type-arg]
    """The base of all tasks."""

    Request = "worker.requests:Request"
