"""What the log keeps of texts: by an entry's transparency, and by the conversation's retention (semantics 10)."""

from __future__ import annotations

from typing import Any

from compaction_service.compactions.models import LIVE, Compaction, Pass

NO_TEXTS: dict[str, Any] = {
    "focus": "",
    "instructions": "",
    "summary": "",
    "sections": [],
    "dropped_content": [],
    "entities": [],
    "notes": [],
}
# What `silent` leaves out besides: it tells status, outcome, trigger, times and token counts.
NO_NAMES: dict[str, Any] = {"requested_by": "", "reason": "", "policy": {}, "model": "", "fallback_reason": ""}


def hidden_by(transparency: str) -> dict[str, Any]:
    """Columns that an entry of this transparency is written without, and their empty values."""
    if transparency == "silent":
        return {**NO_TEXTS, **NO_NAMES}
    return {"dropped_content": [], "notes": []} if transparency == "summary" else {}


def entry_written(compaction: Compaction) -> None:
    """Leave out of an entry that has just ended what its transparency hides, and of older ones what is over the
    retention. The chain keeps its nodes, every entry its counters."""
    policy = compaction.policy
    hidden = hidden_by(policy["transparency"])
    for name, empty in hidden.items():
        setattr(compaction, name, empty)
    if hidden:
        compaction.save(update_fields=list(hidden))
    if "summary" in hidden:
        compaction.passes.update(output="", model="", error="")
    _forget_older(compaction, keep=policy["log_retention"])


def _forget_older(compaction: Compaction, keep: int) -> None:
    entries = Compaction.objects.filter(conversation_id=compaction.conversation_id).exclude(status__in=LIVE)
    newest_over = entries.order_by("-id").values_list("id", flat=True)[keep : keep + 1]
    for last in newest_over:
        over = list(entries.filter(id__lte=last).exclude(**NO_TEXTS).values_list("id", flat=True))
        if over:
            Compaction.objects.filter(id__in=over).update(**NO_TEXTS)
            Pass.objects.filter(compaction_id__in=over).update(output="")
            if compaction.id in over:  # nothing is kept: not of this one either
                compaction.refresh_from_db()
