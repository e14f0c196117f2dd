"""What an erased message takes with it: the nodes over it, the texts made of it, and the run that reads it now."""

from __future__ import annotations

from compaction_service.compactions.ending import end
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Pass, Status, Summary
from compaction_service.conversations.models import Conversation


def nodes_stale(conversation: Conversation, first: int, last: int) -> int:
    """Erase the text of every node over positions `first`..`last`, whatever its state; how many (semantics 9).

    They are `stale`, and so are the active nodes after them, which keep their text: coverage is contiguous. What is
    left of the coverage is written to the conversation's row in memory; the caller measures and saves it.
    """
    nodes = Summary.objects.filter(conversation_id=conversation.id)
    active = nodes.filter(state=NodeState.ACTIVE)
    over = nodes.filter(from_position__lte=last, to_position__gte=first)
    erased = over.update(state=NodeState.STALE, text="", sections=[], ledger=[], entities=[])
    active.filter(from_position__gt=last).update(state=NodeState.STALE)
    newest = active.order_by("-to_position").first()
    conversation.covered_to = newest.to_position if newest else 0
    conversation.carried = [position for position in conversation.carried if position <= conversation.covered_to]
    return erased


def run_stop(conversation: Conversation, first: int) -> bool:
    """End a running compaction that reads position `first` or a later one as `stale`; False: there is none.

    Now, not when it applies: what its next pass would write is made of a text that is to be gone. The result of the
    call it waits for is refused, its cost recorded (semantics 11). A queued one has read nothing, and plans later.
    """
    reading = Compaction.objects.filter(
        conversation_id=conversation.id, status=Status.RUNNING, to_position__gte=first
    ).first()
    if reading is None:
        return False
    end(reading, conversation, Outcome.STALE, "input_changed")
    return True


def texts_erase(conversation: Conversation, first: int) -> int:
    """Erase the log texts made of position `first` or a later one; in how many entries (semantics 9).

    A compaction whose span ends there read them: in its span, or in the summary it went on from.
    """
    reading = Compaction.objects.filter(conversation_id=conversation.id, to_position__gte=first)
    Pass.objects.filter(compaction__in=reading.values("id")).update(output="")
    return reading.update(summary="", sections=[], dropped_content=[], entities=[], notes=[])


def focus_erase(conversation: Conversation, first: int, last: int) -> None:
    """Erase the focus that messages `first`..`last` gave by calling the compact tool: it is their text (semantics 9).

    Wherever it came to: a call may have joined a compaction with another trigger, or be the one to follow it.
    """
    of_it = Compaction.objects.filter(conversation_id=conversation.id)
    of_it.filter(focus_from__range=(first, last)).update(focus="", focus_from=None)
    for running in of_it.filter(follow_up__focus_from__gte=first, follow_up__focus_from__lte=last):
        of_it.filter(id=running.id).update(follow_up={**(running.follow_up or {}), "focus": "", "focus_from": None})
