"""`/v1/admin/compactions`: the log over all tenants, in numbers. Texts are for the admin's pages."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.api.views import PlatformView
from compaction_service.compactions import examples
from compaction_service.compactions.models import Compaction, Outcome, Status, Trigger
from compaction_service.compactions.serializers import PlatformCompactionOut
from compaction_service.conversations import filters

_TENANT = OpenApiParameter("tenant", UUID, description="Of this tenant.")
_CHOICES = (("status", Status), ("outcome", Outcome), ("trigger", Trigger))
_SHOWN = (
    "id", "tenant_id", "conversation_id", "status", "outcome", "reason", "trigger", "strategy", "model", "method",
    "fallback_reason", "from_position", "to_position", "tokens_in", "tokens_out", "llm_tokens_in", "llm_tokens_out",
    "cost", "review", "created_at", "started_at", "finished_at",
)  # fmt: skip


class AdminCompactions(PlatformView):
    @extend_schema(
        operation_id="admin_compactions_list",
        summary="List compactions of all tenants",
        description=(
            "The log of every tenant, newest first, to see how compaction does as a whole: ids, outcomes, numbers"
            " and times. Texts are in the admin's pages, where each look is noted in the tenant's audit trail."
        ),
        tags=["admin"],
        parameters=[
            _TENANT,
            *(OpenApiParameter(name, str, enum=choices.values, description="Only this.") for name, choices in _CHOICES),
            *filters.CREATED_PARAMETERS,
            *PARAMETERS,
        ],
        responses=page_of(PlatformCompactionOut, "PlatformCompactionPage"),
        examples=[examples.PLATFORM_COMPACTIONS],
    )
    def get(self, request: Request) -> Response:
        params = request.query_params
        found = Compaction.unscoped.only(*_SHOWN)
        if (tenant := params.get("tenant")) is not None:
            try:
                found = found.filter(tenant_id=UUID(tenant))
            except ValueError:
                raise ApiError(400, "invalid", "Must be an id.", attr="tenant") from None
        for name, choices in _CHOICES:
            if value := filters.choice(params, name, choices.values):
                found = found.filter(**{name: value})
        page = paginate(filters.created(found, params), params)
        return Response({"data": PlatformCompactionOut(page.rows, many=True).data, "next_cursor": page.next_cursor})
