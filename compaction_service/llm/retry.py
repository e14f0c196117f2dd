"""When to call a model again (semantics 7): the job is the only owner of retries, and this is its rule."""

from __future__ import annotations

import random
from dataclasses import dataclass

from compaction_service.llm.errors import CallError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of the attempts of one call; times in seconds."""

    attempts: int = 5
    total: float = 30.0  # from the start of the first attempt to the start of the last
    base: float = 0.5  # the mean delay after the first attempt; doubled after each
    longest: float = 8.0


DEFAULT_POLICY = RetryPolicy()


def next_delay(
    attempt: int, error: CallError, started: float, now: float, rng: random.Random, policy: RetryPolicy = DEFAULT_POLICY
) -> float | None:
    """Seconds to wait before the next attempt, or None: give up.

    `attempt` attempts have been made, the last one failed with `error`; `started` (of the first attempt) and `now`
    are of one clock. A provider's Retry-After is never undercut: if it does not fit before the deadline, give up.
    """
    if not error.transient or attempt >= policy.attempts:
        return None
    backoff = min(policy.longest, policy.base * 2.0 ** (attempt - 1)) * rng.uniform(0.5, 1.5)
    delay = max(backoff, error.retry_after or 0.0)
    return delay if now + delay < started + policy.total else None
