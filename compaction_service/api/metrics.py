"""What every process measures of its requests. Labels never name a tenant."""

from __future__ import annotations

import os

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

REQUESTS = Histogram(
    "compaction_http_request_seconds",
    "Time to answer, by method, route and status.",
    ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

NEAR_LIMIT = Counter("compaction_context_near_limit", "Contexts that came to 90 % of their limit from below.")
BUDGET_EXHAUSTED = Counter(
    "compaction_budget_exhausted", "Months in which a tenant's budget did not pay a call any more."
)
_at_scrape: list[Collector] = []


def at_scrape(collector: Collector) -> None:
    """Have a collector asked whenever metrics are read: for what is in the database, not in a process."""
    _at_scrape.append(collector)
    REGISTRY.register(collector)


def text() -> bytes:
    """Prometheus text of this process, or of all of them where PROMETHEUS_MULTIPROC_DIR is set."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    for collector in _at_scrape:
        registry.register(collector)
    return generate_latest(registry)
