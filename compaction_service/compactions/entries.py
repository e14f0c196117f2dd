"""What a log entry keeps of its texts: `transparency` when it is written, `log_retention` ever after (semantics 10)."""

from __future__ import annotations

import uuid
from typing import Any

from compaction_service.compactions.models import Compaction, Pass
from compaction_service.compactions.redacting import redact
from tenants.models import Tenant
from tenants.statements import Select

# All texts of an entry. The chain's nodes keep theirs: they are what contexts are made of.
_TEXTS: dict[str, Any] = {
    "summary": "",
    "sections": [],
    "dropped_content": [],
    "entities": [],
    "notes": [],
    "focus": "",
    "focus_from": None,
    "instructions": "",
}
# What else `silent` leaves out: all but id, status, outcome, trigger, times and token counts. Not here: what a revert
# and the apply need of the row (undo, carried, input_hash), which no answer shows.
_TOLD: dict[str, Any] = {
    "reason": "",
    "requested_by": "",
    "request_id": "",
    "strategy": "",
    "policy": {},
    "up_to": None,
    "from_position": None,
    "to_position": None,
    "from_turn": None,
    "to_turn": None,
    "model": "",
    "method": "",
    "fallback_reason": "",
    "target_reached": None,
    "work": {},
    "window_cap": None,
    "cost": None,
}


_WITH_TEXTS = Select(
    Compaction,
    "conversation_id = %s and keeps_texts and finished_at is not null",
    ending="order by id desc offset %s",
    names=("id",),
)


def withhold(compaction: Compaction, tenant: Tenant) -> None:
    """Take out of an entry that is about to be saved what its transparency leaves out: that is never stored.

    The transparency is that of the policy it ran under. Outputs of passes are drafts; only `full` keeps them, and under
    `silent` the passes go too.
    """
    if tenant.redaction:
        redact(compaction)
    transparency = compaction.policy.get("transparency", "full")
    if transparency == "full":
        return
    compaction.dropped_content, compaction.notes = [], []
    if transparency == "summary":
        compaction.passes.exclude(output="").update(output="")
        return
    for name, nothing in {**_TEXTS, **_TOLD}.items():
        setattr(compaction, name, nothing)
    compaction.keeps_texts = False
    compaction.passes.all().delete()


def retain(conversation_id: uuid.UUID, most: int) -> None:
    """Erase the texts of all but the newest `most` entries that have some, first in first out (semantics 10).

    Entries of live compactions are no entries yet. Under the conversation's lock: nobody else erases or adds.
    """
    older = [row[0] for row in _WITH_TEXTS.tuples(conversation_id, most)]
    if older:
        Compaction.objects.filter(id__in=older).update(**_TEXTS, keeps_texts=False)
        Pass.objects.filter(compaction_id__in=older).exclude(output="").update(output="")
