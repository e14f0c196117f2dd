"""What every process measures of its requests. Labels never name a tenant."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

REQUESTS = Histogram(
    "compaction_http_request_seconds",
    "Time to answer, by method, route and status.",
    ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)

NEAR_LIMIT = Counter("compaction_context_near_limit", "Contexts that came to 90 % of their limit from below.")
