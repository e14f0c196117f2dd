"""A circuit breaker per (tenant, model, base URL): stop calling what keeps failing (semantics 7).

    closed -> open          after `failures` failures in a row, at once on a failure that only its owner can mend
    open -> half-open       after `pause` seconds: one caller probes
    half-open -> closed     the probe succeeds;  -> open  it fails

State and decisions only. The caller stores the state where all workers see it, and writes it back with
compare-and-swap. Times are seconds since the epoch, since many processes share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction_service.llm.errors import CallError

Decision = Literal["allow", "probe", "refuse"]
# `probe`: this caller was told to probe, and does. `unrelated`: the call failed by its own input.
Outcome = Literal["success", "failure", "fatal", "probe", "unrelated"]

_FATAL = frozenset({"authentication", "payment_required", "permission", "not_found", "url_refused"})


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    failures: int = 5
    pause: float = 30.0  # seconds
    probe: float = 120.0  # seconds after which a probe nobody reported on counts as lost


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What is stored. The default is a closed breaker that has seen nothing."""

    failures: int = 0  # in a row
    opened_at: float | None = None
    probed_at: float | None = None


DEFAULT_POLICY = BreakerPolicy()


def decide(state: BreakerState, now: float, policy: BreakerPolicy = DEFAULT_POLICY) -> Decision:
    """Whether a call may be made. After "probe", record the outcome "probe" before the call: one caller at a time."""
    if state.opened_at is None:
        return "allow"
    if now < state.opened_at + policy.pause:
        return "refuse"
    if state.probed_at is not None and now < state.probed_at + policy.probe:
        return "refuse"
    return "probe"


def record(state: BreakerState, outcome: Outcome, now: float, policy: BreakerPolicy = DEFAULT_POLICY) -> BreakerState:
    """The state after an outcome. An unrelated failure shows that the provider answers, so it counts as a success."""
    if outcome in ("success", "unrelated"):
        return BreakerState()
    if outcome == "probe":
        return BreakerState(state.failures, state.opened_at, probed_at=now)
    failures = state.failures + 1
    if state.opened_at is not None and state.probed_at is None:
        return BreakerState(failures, state.opened_at)  # a call begun before it opened: the pause runs on
    opens = outcome == "fatal" or state.opened_at is not None or failures >= policy.failures
    return BreakerState(failures, now if opens else None)


def outcome_of(error: CallError | None) -> Outcome:
    """What a finished call means to its breaker; None is a call that succeeded."""
    if error is None:
        return "success"
    if error.code in _FATAL:
        return "fatal"
    return "failure" if error.transient or error.code == "invalid_response" else "unrelated"
