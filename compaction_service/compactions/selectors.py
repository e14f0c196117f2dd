"""Reading the log and the chain."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter

from compaction_service.api.errors import ApiError
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Pass, Status, Summary, Trigger
from compaction_service.conversations import filters
from compaction_service.conversations.models import Message
from compaction_service.conversations.selectors import conversation_get
from compaction_service.engine import jsontext

_CHOICES = (("status", Status), ("outcome", Outcome), ("trigger", Trigger))
CHOICE_PARAMETERS = [
    OpenApiParameter("status", str, enum=Status.values, description="How far it is."),
    OpenApiParameter("outcome", str, enum=Outcome.values, description="How it ended."),
    OpenApiParameter("trigger", str, enum=Trigger.values, description="Why it was asked for."),
]
COMPACTION_PARAMETERS = [
    OpenApiParameter("conversation", str, description="Of this conversation: its id, or `ext:<external_id>`."),
    *CHOICE_PARAMETERS,
    OpenApiParameter("q", str, description="With this text in the summary, in any case."),
    OpenApiParameter("entity", str, description="With this text in a name it kept."),
    OpenApiParameter("position", filters.POSITION, description="Covering this position."),
    *filters.CREATED_PARAMETERS,
]
STATE_PARAMETER = OpenApiParameter("state", str, enum=NodeState.values, description="Only nodes in this state.")


def compactions(params: Mapping[str, str]) -> QuerySet[Compaction]:
    """The log of the tenant in scope, filtered. Raises `ApiError` naming the parameter: 400, or 404 for a
    conversation that is not there."""
    found = Compaction.objects.all()
    if "conversation" in params:
        found = found.filter(conversation_id=_conversation(filters.storable(params, "conversation")))
    found = chosen(found, params)
    if "q" in params:
        found = found.filter(summary__icontains=filters.storable(params, "q"))
    if "entity" in params:
        found = found.filter(entities__iregex=_name_with(filters.storable(params, "entity")))
    if (position := filters.whole(params, "position", least=1)) is not None:
        found = found.filter(from_position__lte=position, to_position__gte=position)
    return filters.created(found, params)


def chosen(found: QuerySet[Compaction], params: Mapping[str, str]) -> QuerySet[Compaction]:
    """Only those with this status, outcome and trigger. Raises `ApiError` 400 naming the parameter."""
    for name, choices in _CHOICES:
        if value := filters.choice(params, name, choices.values):
            found = found.filter(**{name: value})
    return found


def _name_with(text: str) -> str:
    """A pattern for JSON text of a list of strings of which one holds `text`, and not what stands between strings."""
    inside = jsontext.dumps(text)[1:-1]  # as it is written in the column
    literal = re.sub(r"([^\w\s])", r"\\\1", inside)
    string, begun = r'"(?:\\.|[^"\\])*"', r'"(?:\\.|[^"\\])*'
    return rf"^\[(?:{string},)*{begun}{literal}"


def _conversation(ref: str) -> uuid.UUID:
    try:
        return conversation_get(ref).id
    except ApiError as error:
        error.attr = "conversation"
        raise


def passes_of(rows: Sequence[Compaction]) -> dict[uuid.UUID, list[Pass]]:
    """The passes of these compactions, in one query."""
    found: dict[uuid.UUID, list[Pass]] = defaultdict(list)
    for one in Pass.objects.filter(compaction_id__in=[row.id for row in rows]).order_by("number"):
        found[one.compaction_id].append(one)
    return found


def summary_get(summary_id: uuid.UUID) -> Summary:
    """One node of the tenant in scope. Raises `ApiError` 404."""
    found = Summary.objects.filter(id=summary_id).first()
    if found is None:
        raise ApiError(404, "not_found", "No such summary.")
    return found


def summaries_of(conversation_id: uuid.UUID, params: Mapping[str, str]) -> QuerySet[Summary]:
    return in_state(Summary.objects.filter(conversation_id=conversation_id), params)


def in_state(found: QuerySet[Summary], params: Mapping[str, str]) -> QuerySet[Summary]:
    """Only those in this state. Raises `ApiError` 400 naming the parameter."""
    if state := filters.choice(params, "state", NodeState.values):
        found = found.filter(state=state)
    return found


def children_of(rows: Sequence[Summary]) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Ids of the nodes merged into these, oldest first, in one query."""
    found: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    merged = Summary.objects.filter(parent_id__in=[row.id for row in rows]).order_by("from_position")
    for child, parent in merged.values_list("id", "parent_id"):
        found[parent].append(child)
    return found


def originals_of(node: Summary) -> QuerySet[Message]:
    """The messages behind a node."""
    return Message.objects.filter(
        conversation_id=node.conversation_id,
        position__gte=node.from_position,
        position__lte=node.to_position,
        erased_at=None,
    )
