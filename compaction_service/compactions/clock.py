"""The queue's time: the database's, in SQL. Workers on several machines have clocks that differ (semantics 11)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now

AHEAD = timedelta(0)  # always; tests have a time of their own

# A statement's own time: one that waited for a lock must not go by the time before.
SQL = "(statement_timestamp() + %(ahead)s * interval '1 second')"


def later(delay: timedelta = timedelta(0)) -> Any:
    """The queue's time, or that long after it, as an expression of a query."""
    return ExpressionWrapper(Now() + Value(AHEAD + delay), output_field=DateTimeField())


def ahead() -> float:
    """The parameter of `SQL`, seconds."""
    return AHEAD.total_seconds()
