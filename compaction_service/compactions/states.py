"""The automaton of compaction and pass in one place (docs/design.md), save for the ends of compactions (ending.py).

A change is a compare-and-swap on the state that was read: whoever comes second changes nothing and is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, PassStatus, Status

PASS: Mapping[PassStatus, frozenset[PassStatus]] = {
    PassStatus.QUEUED: frozenset({PassStatus.RUNNING, PassStatus.FAILED}),
    # Running again: its lease expired, and another execution takes it over. Queued: a transient error.
    PassStatus.RUNNING: frozenset(
        {PassStatus.RUNNING, PassStatus.QUEUED, PassStatus.SUCCEEDED, PassStatus.FAILED},
    ),
    PassStatus.SUCCEEDED: frozenset(),
    PassStatus.FAILED: frozenset(),
}
# What an execution writes of its pass, besides the state.
_WRITTEN = (
    "kind", "from_position", "to_position", "piece", "output", "tokens_in", "tokens_out", "cost", "error", "attempts",
    "first_attempt_at", "started_at", "duration_ms",
)  # fmt: skip


class NotAllowed(Exception):  # noqa: N818 -- it says what is so
    """A change that the automaton does not have: a fault of ours."""


class Beaten(Exception):  # noqa: N818
    """Somebody else changed the state first. The caller's transaction must not be committed."""


def begin(compaction: Compaction) -> None:
    """Queued -> running. Raises Beaten. How a compaction ends is ending.py's."""
    if not Compaction.objects.filter(id=compaction.id, status=Status.QUEUED).update(status=Status.RUNNING):
        raise Beaten
    compaction.status = Status.RUNNING


def move(one: Pass, to: PassStatus, **changes: Any) -> None:
    """Change the state of a pass and write what was set on it. Raises NotAllowed, Beaten."""
    if to not in PASS[PassStatus(one.status)]:
        raise NotAllowed(f"a pass from {one.status} to {to}")
    for name, value in changes.items():
        setattr(one, name, value)
    written = {name: getattr(one, name) for name in _WRITTEN}
    if Pass.objects.filter(pk=one.pk, status=one.status).update(status=to, **written) != 1:
        raise Beaten
    one.status = to
