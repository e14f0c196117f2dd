"""Compactions and the summary chain in the admin: reading, and what a reviewer may do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from compaction_service.api.errors import ApiError
from compaction_service.compactions import queue_admin, review, services
from compaction_service.compactions.models import Compaction, Pass, Review, Summary
from compaction_service.conversations import transcripts
from compaction_service.conversations.admin import matching, number
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.transcripts import visible
from tenants.models import Tenant
from tenants.platform_admin import (
    AgeFilter,
    DetailAdmin,
    TenantFilter,
    admin_url,
    column,
    id_matches,
    newest_of,
    times,
)
from tenants.scope import tenant_scope

__all__ = ["queue_admin"]  # Django looks for pages in this module only

DEFERRED = ("tenant__summarizer_key", "conversation__system", "conversation__tools")

# What a reviewer may do, by the last part of the path: what the log says of it, and the service that does it.
ACTIONS: dict[str, tuple[str, Callable[[Tenant, UUID], Any]]] = {
    "approve": ("Approved", lambda _tenant, key: services.compaction_review(key, Review.APPROVED)),
    "flag": ("Flagged", lambda _tenant, key: services.compaction_review(key, Review.FLAGGED)),
    "revert": ("Reverted", services.compaction_revert),
    "cancel": ("Cancelled", lambda _tenant, key: services.compaction_cancel(key)),
}

AUDITED = {
    "approve": "compaction.reviewed",
    "flag": "compaction.reviewed",
    "revert": "compaction.reverted",
    "cancel": "compaction.cancelled",
}


def of_conversation(model: type[Compaction | Summary], term: str) -> Q:
    """Rows with this id, or of conversations with this id or external id; beginnings will do."""
    conversations = list(Conversation.unscoped.filter(matching(term)).values_list("id", flat=True))
    found = [model.unscoped.filter(conversation_id__in=conversations)]
    if by_id := id_matches(term):
        found.append(model.unscoped.filter(by_id))
    return newest_of(*found)


@admin.register(Compaction)
class CompactionAdmin(DetailAdmin):
    list_display = (
        times("created_at", "made"), "conversation_name", "tenant", "state", "why", "review_state", "trigger",
        "span_text", "tokens", "made_by", "money", "took",
    )  # fmt: skip
    list_filter = ("outcome", "status", "review", "trigger", AgeFilter, TenantFilter)
    list_select_related = ("tenant", "conversation")
    list_only = (
        "status", "outcome", "reason", "fallback_reason", "trigger",
        "from_position", "to_position", "context_before", "context_after", "tokens_in",
        "tokens_out", "method", "model", "cost", "started_at", "finished_at", "created_at", "reverted_at", "review",
        "tenant__name", "conversation__external_id",
    )  # fmt: skip
    search_help_text = "Beginning of an id or external id"
    detail_template = "admin/compactions/compaction/detail.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        of_row = Pass.unscoped.filter(compaction_id=OuterRef("id")).order_by().values("compaction_id")
        count = Subquery(of_row.annotate(count=Count("id")).values("count"), output_field=IntegerField())
        found: QuerySet[Any] = super().get_queryset(request).annotate(passes_made=count)
        joined: QuerySet[Any] = found.select_related("tenant", "conversation")
        return joined.defer(*DEFERRED)

    def search(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.filter(of_conversation(Compaction, term))

    def get_urls(self) -> list[URLPattern]:
        act = self.admin_site.admin_view(require_POST(self.act_view))
        urls: list[URLPattern] = super().get_urls()
        return [path("<uuid:object_id>/<str:action>/do/", act, name="compactions_compaction_act"), *urls]

    @column("conversation")
    def conversation_name(self, row: Compaction) -> str:
        return visible(row.conversation.external_id or str(row.conversation_id)[:13])

    @column("outcome", label=review.OUTCOME_LABELS)
    def state(self, row: Compaction) -> str:
        return review.outcome(row)

    @column("reason")
    def why(self, row: Compaction) -> str:
        return row.reason or row.fallback_reason or "\u2013"

    @column("span")
    def span_text(self, row: Compaction) -> str:
        return f"{row.from_position}\u2013{row.to_position}" if row.from_position else "\u2013"

    @column("tokens")
    def tokens(self, row: Compaction) -> str:
        before, after = review.tokens_of(row.context_before), review.tokens_of(row.context_after)
        if before is None:
            return "\u2013"
        return f"{before:,}" if after is None else f"{before:,} \u2192 {after:,}"

    @column("ratio")
    def ratio(self, row: Compaction) -> str:
        return f"{row.tokens_in / row.tokens_out:.1f}" if row.tokens_in and row.tokens_out else "\u2013"

    @column("method")
    def made_by(self, row: Compaction) -> str:
        return ", ".join(filter(None, (row.method, row.model))) or "\u2013"

    @column("cost")
    def money(self, row: Compaction) -> str:
        return f"${row.cost:.4f}" if row.cost else "\u2013"

    @column("took")
    def took(self, row: Any) -> str:
        """With the passes it took, where the list has counted them."""
        parts = []
        if row.started_at is not None and row.finished_at is not None:
            parts.append(f"{(row.finished_at - row.started_at).total_seconds():.1f} s")
        if passes := getattr(row, "passes_made", None):
            parts.append(f"{passes} pass" + "es" * (passes > 1))
        return ", ".join(parts) or "\u2013"

    @column("review", label=review.REVIEW_LABELS)
    def review_state(self, row: Compaction) -> str:
        return row.review

    def has_review_permission(self, request: HttpRequest) -> bool:
        allowed: bool = request.user.has_perm("compactions.change_compaction")
        return allowed

    def detail(self, request: HttpRequest, row: Compaction) -> dict[str, Any]:
        conversation = row.conversation
        with tenant_scope(row.tenant.id):
            nodes = list(
                Summary.objects.filter(conversation_id=row.conversation_id)
                .order_by("-id")
                .defer("text", "sections", "entities")[: review.CHAIN]
            )
            replaced = list(Summary.objects.filter(retired_by_id=row.id).order_by("from_position"))
            made = [node for node in nodes if node.compaction_id == row.id]
            return {
                "row": row,
                "conversation": conversation,
                "title": f"Compaction of {visible(str(conversation))}",
                "state": review.outcome(row),
                "state_label": review.OUTCOME_LABELS[review.outcome(row)],
                "review_label": review.REVIEW_LABELS[row.review],
                "may_act": self.has_review_permission(request),
                "can": review.doable(row),
                "bars": review.bars(row),
                "parts": review.part_rows(row),
                "ratio": self.ratio(row),
                "took": self.took(row),
                "passes": review.attempts(row),
                "sections": review.section_lines(row.sections),
                "text": review.text_lines(row.summary),
                "made": made,
                "replaced": [(node, review.text_lines(node.text)) for node in replaced],
                "dropped": [{**one, "text": visible(one["text"])} for one in row.dropped_content],
                "entities": [visible(name) for name in row.entities],
                "notes": review.notes(row.notes),
                "policy": visible(json.dumps(row.policy, indent=2, sort_keys=True, ensure_ascii=False)),
                "chain": review.chain(nodes, conversation.last_position),
                "transcript": self._removed(request, row),
            }

    def _removed(self, request: HttpRequest, row: Compaction) -> transcripts.Transcript | None:
        if row.from_position is None or row.to_position is None:
            return None
        start = number(request.GET, "from")
        return transcripts.page(row.conversation, row.from_position, row.to_position, start=start, carried=row.carried)

    def act_view(self, request: HttpRequest, object_id: UUID, action: str) -> HttpResponse:
        """Approve, flag, revert or cancel, by the service the API calls. POST only, with a token."""
        if not self.has_review_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(object_id))
        if row is None or action not in ACTIONS:
            raise Http404
        done, service = ACTIONS[action]
        try:
            with tenant_scope(row.tenant.id):
                service(row.tenant, row.id)
        except ApiError as error:
            self.message_user(request, str(error.detail), messages.ERROR)
        else:
            self.note(request, row, f"compaction {done.lower()}", AUDITED[action])
            self.log_change(request, row, done)
            self.message_user(request, f"{done}.", messages.SUCCESS)
        return HttpResponseRedirect(admin_url(Compaction, "change", row.pk))


@admin.register(Summary)
class SummaryAdmin(DetailAdmin):
    """Nodes of the summary chain."""

    list_display = (
        "span_text", "conversation_name", "tenant", "level", "tokens", "method", "node_state",
        times("created_at", "made"),
    )  # fmt: skip
    list_filter = ("state", AgeFilter, TenantFilter)
    list_select_related = ("tenant", "conversation")
    list_only = (
        "level", "from_position", "to_position", "tokens", "method", "state", "created_at", "tenant__name",
        "conversation__external_id",
    )  # fmt: skip
    search_help_text = "Beginning of an id or external id"
    detail_template = "admin/compactions/summary/detail.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset(request).select_related("tenant", "conversation")
        return found.defer(*DEFERRED)

    def search(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        return queryset.filter(of_conversation(Summary, term))

    @column("conversation")
    def conversation_name(self, node: Summary) -> str:
        return visible(node.conversation.external_id or str(node.conversation_id)[:13])

    @column("span")
    def span_text(self, node: Summary) -> str:
        return f"{node.from_position}\u2013{node.to_position}"

    @column("state", label=review.STATE_LABELS)
    def node_state(self, node: Summary) -> str:
        return node.state

    def detail(self, request: HttpRequest, node: Summary) -> dict[str, Any]:
        with tenant_scope(node.tenant.id):
            merged = Summary.objects.filter(parent_id=node.id).order_by("from_position")
            return {
                "node": node,
                "conversation": node.conversation,
                "title": f"Summary of positions {self.span_text(node)} of {visible(str(node.conversation))}",
                "state_label": review.STATE_LABELS[node.state],
                "sections": review.section_lines(node.sections),
                "text": review.text_lines(node.text),
                "entities": [visible(name) for name in node.entities],
                "children": list(merged.only("from_position", "to_position", "level", "tokens")),
                "transcript": transcripts.page(
                    node.conversation, node.from_position, node.to_position, start=number(request.GET, "from")
                ),
            }
