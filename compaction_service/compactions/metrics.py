"""What is measured of compactions, for `/metrics` of web processes and of workers. No label names a tenant."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError, transaction
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from compaction_service.api.metrics import at_scrape
from compaction_service.compactions import queue
from compaction_service.compactions.models import Outcome, Trigger
from compaction_service.routers import current_alias

ENDED = Counter("compaction_compactions", "Compactions that ended, by outcome and trigger.", ["outcome", "trigger"])
PASSES = Histogram(
    "compaction_pass_seconds",
    "Time of a pass's work outside the database, by kind.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 120),
)
CALLS = Counter("compaction_model_calls", "Calls to models, by what became of them.", ["status"])

REFUSED = Counter("compaction_calls_refused", "Calls to models that were not made, by why.", ["reason"])


def ended(outcome: Outcome, trigger: Trigger) -> None:
    """Count a compaction once its end is committed."""
    transaction.on_commit(ENDED.labels(outcome.value, trigger.value).inc, using=current_alias.get())


def called(status: str) -> None:
    """Count a call once it is in the ledger. `status`: ok, failed or late."""
    transaction.on_commit(CALLS.labels(status).inc, using=current_alias.get())


def refused(reason: str) -> None:
    """Count a call that was not made. `reason`: breaker_open or budget_exhausted."""
    REFUSED.labels(reason).inc()


class Queue(Collector):
    """The queue as it is when Prometheus asks: one query over live jobs."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("compaction_jobs", "Live compactions, by state.", labels=["state"])
        yield GaugeMetricFamily("compaction_oldest_due_seconds", "How long the job that waits longest has been due.")

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            tenants = queue.by_tenant()
        except DatabaseError:
            return  # `/readyz` tells of the database; a scrape must not fail with it
        jobs, oldest = self.describe()
        for state in queue.STATES:
            jobs.add_metric([state], sum(getattr(one, state) for one in tenants))
        oldest.add_metric([], max((one.oldest_due for one in tenants), default=0))
        yield jobs
        yield oldest


at_scrape(Queue())
