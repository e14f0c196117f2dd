"""The automaton of compaction and pass in one place (docs/design.md), save for the ends of compactions (ending.py).

A change is a compare-and-swap on the state that was read: whoever comes second changes nothing and is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, PassStatus, Status
from tenants.statements import Update

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
# What a job writes of its compaction: all but what names it and what a reviewer may say meanwhile.
_ENTRY = tuple(
    field.name
    for field in Compaction._meta.concrete_fields  # noqa: SLF001  (Django's documented interface)
    if field.name not in {"id", "tenant", "conversation", "created_at", "review", "reverted_at"}
)
# Written with every job.
_BEGIN = Update(Compaction, _ENTRY, "id = %s and status = 'queued'")
_END = Update(Compaction, _ENTRY, "id = %s and status in ('queued', 'running')")
_MOVE = Update(Pass, ("status", *_WRITTEN), "id = %s and status = %s")


class NotAllowed(Exception):  # noqa: N818 -- it says what is so
    """A change that the automaton does not have: a fault of ours."""


class Beaten(Exception):  # noqa: N818
    """Somebody else changed the state first. The caller's transaction must not be committed."""


def begin(compaction: Compaction) -> None:
    """Queued -> running, with what was set on it. Raises Beaten."""
    compaction.status = Status.RUNNING
    if not _BEGIN.run(compaction, compaction.id):
        raise Beaten


def end(compaction: Compaction) -> bool:
    """Write the final state that was set on it, with all else. False: it had ended. What an end does is ending.py's."""
    return _END.run(compaction, compaction.id) == 1


def move(one: Pass, to: PassStatus, **changes: Any) -> None:
    """Change the state of a pass and write what was set on it. Raises NotAllowed, Beaten."""
    if to not in PASS[PassStatus(one.status)]:
        raise NotAllowed(f"a pass from {one.status} to {to}")
    for name, value in changes.items():
        setattr(one, name, value)
    before, one.status = one.status, to
    if _MOVE.run(one, one.pk, before) != 1:
        raise Beaten
