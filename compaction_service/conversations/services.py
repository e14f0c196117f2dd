"""Writing conversations: create, change, flag, erase. (Appending has a module of its own.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from compaction_service.api import idempotency
from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, Pass, Summary, Work
from compaction_service.conversations import calibration, masking, near_limit, quota, recounts, thinking
from compaction_service.conversations.appending import Appended, AppendRequest, Batch, append_once
from compaction_service.conversations.flags import flags_set
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.selectors import conversation_get
from compaction_service.conversations.state import commit
from compaction_service.conversations.system import system_set, tools_set
from compaction_service.conversations.terms import Terms, terms_of, window_kept
from compaction_service.engine import formats, policy
from compaction_service.engine.admit import Ledger
from compaction_service.engine.types import JSON
from compaction_service.ids import uuid7
from compaction_service.routers import current_alias
from tenants.models import Tenant

CHANGEABLE = ("model", "context_window", "system", "tools", "policy", "metadata")

__all__ = ["NewConversation", "conversation_create", "conversation_erase", "conversation_update", "flags_set", "insert"]


@dataclass(frozen=True)
class NewConversation:
    model: str
    format: str = "openai"
    external_id: str | None = None
    system: JSON = None
    tools: JSON = None
    policy: Mapping[str, Any] | None = None
    context_window: int | None = None
    metadata: Mapping[str, Any] | None = None
    messages: Sequence[JSON] = ()


def conversation_create(*, tenant: Tenant, new: NewConversation) -> Appended:
    """A conversation with its first messages, all or nothing. Runs inside the tenant's scope.

    Raises `ApiError` (409 for an `external_id` that is taken, 400 for an unknown model), `PolicyError`, `MessageError`.
    """
    policy.check(new.policy or {})
    quota.check_conversations(tenant)
    conversation = Conversation(
        id=uuid7(),
        tenant_id=tenant.id,
        external_id=new.external_id,
        model=new.model,
        format=new.format,
        policy=policy.merge({}, new.policy or {}),
        context_window=new.context_window,
        metadata=dict(new.metadata or {}),
        ledger=Ledger().as_dict(),
        tokenizer="",
    )
    terms = _adopt_model(conversation, tenant)
    fmt = formats.get(new.format)
    fmt.check_system(new.system, "system")
    system_set(conversation, terms, fmt, new.system)
    if new.tools is not None:
        fmt.check_tools(new.tools, "tools")
        tools_set(conversation, terms, fmt, new.tools)
    insert(conversation)
    appended = append_once(conversation, tenant, Batch(AppendRequest(messages=new.messages)))
    if appended is None:
        raise RuntimeError("nobody else can have seen this conversation")
    return appended


def insert(conversation: Conversation) -> None:
    """Save a new row. Raises `ApiError` 409 for an `external_id` that is taken.

    That is no error of the database's, which would log the statement with the row's texts.
    """
    Conversation.objects.bulk_create([conversation], ignore_conflicts=True)
    if conversation.external_id is not None and not Conversation.objects.filter(id=conversation.id).exists():
        raise ApiError(
            409, "external_id_taken", "A conversation with this external id exists already.", attr="external_id"
        )


def _adopt_model(conversation: Conversation, tenant: Tenant) -> Terms:
    """Take the factor of the conversation's model; checks that its policy goes with the window.

    While its counts are of another tokenizer the model's own factor makes the best of them (`Terms.foreign`).
    """
    conversation.calibrated = False
    terms = terms_of(conversation, tenant.policy)
    conversation.tokenizer = terms.tokenizer
    if terms.foreign:
        conversation.factor = terms.spec.factor
    else:
        conversation.factor, conversation.calibrated = calibration.start(terms.spec)
    terms = replace(terms, factor=conversation.factor, calibrated=conversation.calibrated)
    _ = terms.limits  # raises PolicyError for a reserve that leaves no window
    return terms


def _take_model(conversation: Conversation, tenant: Tenant, changes: Mapping[str, Any]) -> Terms:
    """The terms after a change of model or window, if there is one; checks that the policy goes with the window."""
    model = changes.get("model", conversation.model)
    another = model != conversation.model
    if another:
        conversation.model = model
        conversation.context_window = window_kept(model, conversation.context_window)
    if "context_window" in changes:
        conversation.context_window = changes["context_window"]
    if another or "context_window" in changes:
        conversation.retry_from_tokens = None
    try:
        terms = _adopt_model(conversation, tenant) if another else terms_of(conversation, tenant.policy)
    except ApiError as error:
        if "context_window" in changes and not another:
            error.attr = "context_window"  # taken away from a model that has no other
        raise
    _ = terms.limits
    return terms


def conversation_update(*, tenant: Tenant, ref: str, changes: Mapping[str, Any]) -> Appended:
    """PATCH of model, context_window, system, tools, policy, metadata. The trigger is checked again (semantics 4).

    Policy merges, null unsets. A change of model scales the sums by the ratio of the factors; where the new one has
    another tokenizer, a worker recounts (semantics 3). A window that was given stays only where the new model can take
    more.
    """
    conversation = conversation_get(ref, lock=True)
    prefix = terms_of(conversation, tenant.policy).policy.summary_prefix
    fields = [name for name in CHANGEABLE if name in changes]
    if "metadata" in changes:
        conversation.metadata = dict(changes["metadata"])
    if "policy" in changes:
        policy.check(changes["policy"])  # before null unsets: an unknown field is none to unset
        conversation.policy = policy.merge(conversation.policy, changes["policy"])
        masking.look_again(conversation)
        conversation.retry_from_tokens = None
    terms = _take_model(conversation, tenant, changes)
    if "model" in fields and "context_window" not in fields:
        fields.append("context_window")
    fmt = formats.get(conversation.format)
    if "system" in changes:
        fmt.check_system(changes["system"], "system")
        system_set(conversation, terms, fmt, changes["system"])
    if "tools" in changes:
        fmt.check_tools(changes["tools"], "tools")
        tools_set(conversation, terms, fmt, changes["tools"])
    thinking.settings_changed(conversation, changes, prefix != terms.policy.summary_prefix)
    conversation.version += 1
    at_rest = Ledger.from_dict(conversation.ledger).rest
    compaction = requests.automatic(conversation, terms, at_rest=at_rest, requested_by="update")
    crossing = near_limit.note(conversation, terms)
    if not commit(conversation, *fields):
        raise RuntimeError("a locked conversation changed under its lock")
    if crossing:
        near_limit.announce(conversation)
    if terms.foreign:
        recounts.enqueue(conversation)
    if compaction is not None:
        requests.enqueue(compaction)
    return Appended(conversation, terms, [], compaction)


def conversation_erase(*, ref: str) -> dict[str, Any]:
    """Erase a conversation with all that was made of it; the receipt says how many rows of each kind are gone.

    A worker at it finds no row to write to. What calls cost, and how much was stored on a day, stays in the ledger,
    which holds ids and numbers only.
    """
    conversation = conversation_get(ref, lock=True)
    of_it = {"conversation_id": conversation.id}
    jobs = list(Compaction.objects.filter(**of_it).values_list("id", flat=True))
    counts = {
        "queued_work": Work.objects.filter(pk__in=jobs).delete()[0],
        "idempotency_answers": idempotency.forget_conversation(conversation.id),
        "messages": Message.objects.filter(**of_it)._raw_delete(current_alias.get()),  # noqa: SLF001 -- no rows fetched
        "summaries": Summary.objects.filter(**of_it).count(),
        "passes": Pass.objects.filter(compaction_id__in=jobs)._raw_delete(current_alias.get()),  # noqa: SLF001
        "compactions": len(jobs),
    }
    erased = {"id": conversation.id, "erased_at": timezone.now(), "counts": counts}
    conversation.delete()  # its id is None from here on
    return erased
