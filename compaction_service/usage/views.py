"""`/v1/usage`."""

from __future__ import annotations

from datetime import date

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.pagination import PARAMETERS
from compaction_service.api.views import TenantView
from compaction_service.usage import selectors
from compaction_service.usage.budgets import budget_shown
from compaction_service.usage.examples import USAGE
from compaction_service.usage.serializers import UsagePage

_PARAMETERS = [
    OpenApiParameter(
        "from", date, description=f"First day, UTC. Default: {selectors.DEFAULT_DAYS} days that end with `to`."
    ),
    OpenApiParameter("to", date, description="Last day, included. Default: today."),
    OpenApiParameter("group_by", str, enum=selectors.GROUPS, default="day", description="What a row adds up."),
]


class UsageView(TenantView):
    scopes = {"GET": "read"}

    @extend_schema(
        operation_id="usage_get",
        summary="Read what was used",
        description=(
            "Messages and tokens stored, compactions by outcome, tokens and cost of models, tokens saved, over at most "
            f"{selectors.MOST_DAYS} days. By model, messages and compactions count under the conversation's model, "
            "calls under the model that was called."
        ),
        parameters=[*_PARAMETERS, *PARAMETERS],
        responses=UsagePage,
        examples=[USAGE],
    )
    def get(self, request: Request) -> Response:
        asked = selectors.question(request.query_params)
        rows, cursor = selectors.usage(asked, request.query_params)
        about = {"from": asked.first, "to": asked.last, "group_by": asked.group_by, "budget": budget_shown()}
        return Response({**about, "data": rows, "next_cursor": cursor})
