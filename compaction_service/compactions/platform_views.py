"""`/v1/admin/compactions` and `/v1/admin/summaries`: the log and the chains of all tenants.

Lists are numbers; one entry or node, read by its id, is whole, and the look is told in its tenant's audit trail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.api.views import PlatformView
from compaction_service.compactions import answers, examples, selectors
from compaction_service.compactions.models import Compaction, Summary
from compaction_service.compactions.serializers import (
    PlatformCompactionOut,
    PlatformEntryOut,
    PlatformNodeOut,
    PlatformSummaryOut,
)
from compaction_service.compactions.views import COMPACTION_ID, SUMMARY_ID
from compaction_service.conversations import filters
from tenants import audit
from tenants.scope import TenantModel, tenant_scope

_OF = [
    OpenApiParameter("tenant", UUID, description="Of this tenant."),
    OpenApiParameter("conversation", UUID, description="Of this conversation."),
]
_COMPACTION = (
    "id", "tenant_id", "conversation_id", "status", "outcome", "reason", "trigger", "strategy", "model", "method",
    "fallback_reason", "from_position", "to_position", "tokens_in", "tokens_out", "llm_tokens_in", "llm_tokens_out",
    "cost", "review", "created_at", "started_at", "finished_at",
)  # fmt: skip
_NODE = (
    "id", "tenant_id", "conversation_id", "compaction_id", "level", "from_position", "to_position", "tokens", "method",
    "parent_id", "state", "created_at",
)  # fmt: skip

Row = TypeVar("Row", bound=TenantModel)


def _of(found: QuerySet[Row], params: Mapping[str, str]) -> QuerySet[Row]:
    """Only rows of the tenant and the conversation asked for. Raises `ApiError` 400 naming the parameter."""
    for name in ("tenant", "conversation"):
        if (value := params.get(name)) is not None:
            try:
                found = found.filter(**{f"{name}_id": UUID(value)})
            except ValueError:
                raise ApiError(400, "invalid", "Must be an id.", attr=name) from None
    return found


def _listed(found: QuerySet[Row], params: Mapping[str, str], shown: type[serializers.Serializer[Any]]) -> Response:
    """A page of rows, newest first, within the times asked for."""
    page = paginate(filters.created(found, params), params)
    return Response({"data": shown(page.rows, many=True).data, "next_cursor": page.next_cursor})


def _whole(
    rows: QuerySet[Row], identifier: UUID, kind: str, reader: object, answer: Callable[[Row], dict[str, Any]]
) -> Response:
    """One row as its tenant sees it; the tenant's audit trail tells who looked. Raises `ApiError` 404."""
    row = rows.filter(id=identifier).first()
    if row is None or row.tenant_id is None:
        raise ApiError(404, "not_found", f"No such {kind}.")
    with tenant_scope(row.tenant_id):
        audit.record(audit.VIEWED, str(reader), f"{kind}:{identifier}")
        return Response({"tenant": row.tenant_id, **answer(row)})


class AdminCompactions(PlatformView):
    @extend_schema(
        operation_id="admin_compactions_list",
        summary="List compactions of all tenants",
        description=(
            "The log of every tenant, newest first, to see how compaction does as a whole: ids, outcomes, numbers"
            " and times. One entry, read by its id, has the texts."
        ),
        tags=["admin"],
        parameters=[*_OF, *selectors.CHOICE_PARAMETERS, *filters.CREATED_PARAMETERS, *PARAMETERS],
        responses=page_of(PlatformCompactionOut, "PlatformCompactionPage"),
        examples=[examples.PLATFORM_COMPACTIONS],
    )
    def get(self, request: Request) -> Response:
        params = request.query_params
        found = selectors.chosen(_of(Compaction.unscoped.only(*_COMPACTION), params), params)
        return _listed(found, params, PlatformCompactionOut)


class AdminCompaction(PlatformView):
    @extend_schema(
        operation_id="admin_compactions_get",
        summary="Read a compaction of any tenant",
        description="Its log entry with all texts, as its tenant sees it. The tenant's audit trail tells of the look.",
        tags=["admin"],
        parameters=[COMPACTION_ID],
        responses=PlatformEntryOut,
        examples=[examples.PLATFORM_COMPACTION],
    )
    def get(self, request: Request, compaction_id: UUID) -> Response:
        def entry(row: Compaction) -> dict[str, Any]:
            return answers.compaction(row, selectors.passes_of([row])[row.id])

        return _whole(Compaction.unscoped.all(), compaction_id, "compaction", request.user, entry)


class AdminSummaries(PlatformView):
    @extend_schema(
        operation_id="admin_summaries_list",
        summary="List summary nodes of all tenants",
        description="Newest first, in every state; spans, numbers and times, no texts.",
        tags=["admin"],
        parameters=[*_OF, selectors.STATE_PARAMETER, *filters.CREATED_PARAMETERS, *PARAMETERS],
        responses=page_of(PlatformSummaryOut, "PlatformSummaryPage"),
        examples=[examples.PLATFORM_SUMMARIES],
    )
    def get(self, request: Request) -> Response:
        params = request.query_params
        found = selectors.in_state(_of(Summary.unscoped.only(*_NODE), params), params)
        return _listed(found, params, PlatformSummaryOut)


class AdminSummary(PlatformView):
    @extend_schema(
        operation_id="admin_summaries_get",
        summary="Read a summary node of any tenant",
        description="With its text, as its tenant sees it. The tenant's audit trail tells of the look.",
        tags=["admin"],
        parameters=[SUMMARY_ID],
        responses=PlatformNodeOut,
        examples=[examples.PLATFORM_SUMMARY],
    )
    def get(self, request: Request, summary_id: UUID) -> Response:
        def node(row: Summary) -> dict[str, Any]:
            return answers.summary(row, selectors.children_of([row])[row.id])

        return _whole(Summary.unscoped.all(), summary_id, "summary", request.user, node)
