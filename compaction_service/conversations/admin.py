"""Conversations in the admin: the meter, the running state, the messages, and what the agent would be sent now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path

from compaction_service.api.errors import ApiError
from compaction_service.compactions.models import LIVE, Compaction, Summary
from compaction_service.conversations import contexts, transcripts
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.terms import Terms, breakdown, meter, terms_of
from compaction_service.engine import fit, formats
from compaction_service.engine.admit import Ledger
from compaction_service.engine.policy import PolicyError
from tenants.models import Tenant
from tenants.platform_admin import AgeFilter, DetailAdmin, TenantFilter, column, id_matches, newest_of, storable, times
from tenants.scope import tenant_scope

COMPACTIONS = 10  # newest ones shown beside the messages
COMPACTION_FIELDS = (
    "status", "outcome", "trigger", "from_position", "to_position", "context_before", "context_after", "created_at",
    "reverted_at",
)  # fmt: skip
CONTEXT_MESSAGES = 200  # newest ones of a context preview
STATES = {"idle": "", "queued": "warning", "running": "info"}


def matching(term: str) -> Q:
    """Conversations by the beginning of their id or of their external id."""
    found = [Conversation.unscoped.filter(external_id__startswith=term)] if storable(term) else []
    if by_id := id_matches(term):
        found.append(Conversation.unscoped.filter(by_id))
    return newest_of(*found)


class LiveFilter(admin.SimpleListFilter):
    """Conversations with a live compaction, found from the compactions: those are few and indexed."""

    title = "compaction"
    parameter_name = "live"

    def lookups(self, _request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return [(status.value, status.value) for status in LIVE]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in LIVE:
            return queryset
        live = Compaction.unscoped.filter(status=self.value()).values("conversation_id")
        return queryset.filter(id__in=live)


@admin.register(Conversation)
class ConversationAdmin(DetailAdmin):
    list_display = ("name", "tenant", "model", "messages", "tokens", "state", times("updated_at", "changed"))
    list_display_links = ("name",)
    list_filter = (LiveFilter, AgeFilter, TenantFilter)
    list_select_related = ("tenant",)
    list_only = (
        "external_id", "model", "message_count", "system_tokens", "tools_tokens", "summary_tokens", "carried_tokens",
        "tail_tokens", "factor", "compaction_state", "updated_at", "tenant__name",
    )  # fmt: skip
    search_help_text = "Beginning of an id or external id"
    detail_template = "admin/conversations/conversation/detail.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("tenant").defer("tenant__summarizer_key")

    def search(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.filter(matching(term))

    def get_urls(self) -> list[URLPattern]:
        pages = (
            path(
                "<uuid:object_id>/context/",
                self.admin_site.admin_view(self.context_view),
                name="conversations_conversation_context",
            ),
            path(
                "<uuid:object_id>/messages/<int:position>/",
                self.admin_site.admin_view(self.message_view),
                name="conversations_conversation_message",
            ),
        )
        urls: list[URLPattern] = super().get_urls()
        return [*pages, *urls]

    @column("conversation")
    def name(self, row: Conversation) -> str:
        return transcripts.visible(row.external_id or str(row.id))

    @column("messages")
    def messages(self, row: Conversation) -> str:
        return f"{row.message_count:,}"

    @column("tokens")
    def tokens(self, row: Conversation) -> str:
        parts = (row.system_tokens, row.tools_tokens, row.summary_tokens, row.carried_tokens, row.tail_tokens)
        return f"{math.ceil(sum(parts) * row.factor):,}"

    @column("compaction", label=STATES)
    def state(self, row: Conversation) -> str:
        return row.compaction_state

    def detail(self, request: HttpRequest, row: Conversation) -> dict[str, Any]:
        with tenant_scope(row.tenant.id):
            latest = max(1, row.last_position - transcripts.PAGE + 1)
            start = number(request.GET, "from") or latest
            recent = Compaction.objects.filter(conversation_id=row.id).order_by("-id")
            nodes = Summary.objects.filter(conversation_id=row.id, state="active").order_by("from_position")
            return {
                "conversation": row,
                "title": f"Conversation {self.name(row)}",
                "state_label": STATES[row.compaction_state],
                **_terms(row, row.tenant),
                "open_calls": [transcripts.visible(call.name) for call in Ledger.from_dict(row.ledger).open_calls],
                "carried": ", ".join(map(str, row.carried)),
                "nodes": list(nodes.defer("text", "sections", "entities")),
                "compactions": list(recent.only(*COMPACTION_FIELDS)[:COMPACTIONS]),
                "transcript": transcripts.page(row, 1, row.last_position, start=start, carried=row.carried),
            }

    def context_view(self, request: HttpRequest, object_id: Any) -> HttpResponse:
        """What the agent would be sent now, as it would be sent."""
        return self.page(request, str(object_id), "admin/conversations/conversation/context.html", _context)

    def message_view(self, request: HttpRequest, object_id: Any, position: int) -> HttpResponse:
        """One message whole."""

        def detail(_request: HttpRequest, row: Conversation) -> dict[str, Any]:
            with tenant_scope(row.tenant.id):
                message = Message.objects.filter(conversation_id=row.id, position=min(position, 2**31 - 1)).first()
            if message is None:
                raise Http404
            return {"conversation": row, "line": transcripts.whole(row, message), "title": f"Message {position}"}

        return self.page(request, str(object_id), "admin/conversations/conversation/message.html", detail)


def number(params: Mapping[str, str], name: str) -> int | None:
    """A position given in the query; None where it is none."""
    text = params.get(name, "")
    return min(int(text), 2**31 - 1) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _terms(row: Conversation, tenant: Tenant) -> dict[str, Any]:
    """Meter and policy; what is wrong, where a model has left the registry since."""
    try:
        terms = terms_of(row, tenant.policy)
    except (ApiError, PolicyError) as error:
        return {"terms_error": str(error)}
    shown = meter(breakdown(row, terms), terms)
    policy = [(name, value, terms.sources.get(name, "service")) for name, value in terms.policy.as_dict().items()]
    stretches, start = [], 0.0
    for part, tokens in shown["breakdown"].items():
        width = 100 * tokens / max(1, shown["limit"], shown["tokens"])
        stretches.append((part, round(start, 2), round(width, 2)))
        start += width
    percent = round(100 * shown["utilization"], 1)
    return {"meter": shown, "percent": percent, "stretches": stretches, "terms": terms, "policy": policy}


def _context(_request: HttpRequest, row: Conversation) -> dict[str, Any]:
    shared = {"conversation": row, "title": "Context"}
    with tenant_scope(row.tenant.id):
        try:
            terms: Terms = terms_of(row, row.tenant.policy)
            body = contexts.context_read(row, terms, contexts.parts_stored(row, terms)).body
        except (ApiError, PolicyError, fit.Overflow) as error:
            return {**shared, "error": str(error) or "It does not fit."}
    fmt = formats.get(row.format)
    messages = body["messages"]
    names = {part.id: part.name for message in messages for part in fmt.parts(message) if part.kind == "call"}
    lines = [
        transcripts.given(fmt, message, {key or "": name or "" for key, name in names.items()})
        for message in messages[-CONTEXT_MESSAGES:]
    ]
    return {
        **shared,
        "body": body,
        "system": None if body["system"] is None else transcripts.text_of(body["system"]),
        "tools": None if body["tools"] is None else transcripts.text_of(body["tools"]),
        "lines": lines,
        "hidden": len(messages) - len(lines),
    }
