"""The endpoint of the context, and how a context is answered (api.md)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.views import TenantView
from compaction_service.conversations import contexts, filters, selectors
from compaction_service.conversations.context_serializers import ContextOut
from compaction_service.conversations.examples import CONTEXT
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms
from compaction_service.conversations.views import REF
from compaction_service.conversations.waiting import wait_until
from compaction_service.engine.fit import Overflow
from compaction_service.engine.formats.converting import Lossy
from compaction_service.engine.projection import Parts

IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The ETag of an earlier answer: 304 if it still holds."
)
UNCHANGED = OpenApiResponse(description="The answer of this ETag still holds.")


class ContextDetail(TenantView):
    scopes = {"GET": "read"}
    own_transactions = frozenset({"GET"})

    @extend_schema(
        operation_id="context_get",
        summary="Read the context",
        description=(
            "What to send to the model next: valid for its provider, and fitting. `wait` holds the request while a "
            "live compaction is needed for it to fit; one that does not fit then is made to fit without a model "
            "(`degraded`)."
        ),
        parameters=[REF, *filters.CONTEXT_PARAMETERS, IF_NONE_MATCH],
        responses={200: ContextOut, 304: UNCHANGED, 422: None},
        examples=[CONTEXT],
    )
    def get(self, request: Request, ref: str) -> Response:
        asked = filters.context_question(request.query_params)

        def look() -> Response | None:
            with self.scope():
                conversation = selectors.conversation_get(ref)
                terms = contexts.terms_for(conversation, self.tenant.policy, model=asked.model, reserve=asked.reserve)
                if self._worth_waiting(conversation, terms, asked):
                    return None
                target = asked.format or conversation.format
                tag = contexts.etag(conversation, terms, target)
                if request.headers.get("If-None-Match") == tag:
                    return Response(status=304, headers={"ETag": tag})
                parts = contexts.parts_stored(conversation, terms)
            body = self._projected(conversation, terms, parts, target)
            return Response(body, headers={"ETag": tag})

        answer = wait_until(look, asked.wait)
        if answer is None:
            asked = asked.at_once()
            answer = look()
        if answer is None:
            raise RuntimeError("a request that does not wait is always answered")
        return answer

    @staticmethod
    def _worth_waiting(conversation: Conversation, terms: Any, asked: filters.ContextQuestion) -> bool:
        if not asked.wait or conversation.compaction_live is None or contexts.hopeless(conversation, terms):
            return False
        return asked.wait_for == "idle" or not contexts.fits(conversation, terms)

    @staticmethod
    def _projected(conversation: Conversation, terms: Terms, parts: Parts, target: str) -> dict[str, Any]:
        try:
            return context_body(conversation, contexts.context_read(conversation, terms, parts, target))
        except Lossy as lossy:
            raise mismatch_error(lossy, conversation.format, target) from None
        except Overflow as overflow:
            raise overflow_error(overflow, terms) from None


def context_body(conversation: Conversation, context: contexts.Context) -> dict[str, Any]:
    live = conversation.compaction_live
    status = {"id": live, "status": conversation.compaction_state, "trigger": conversation.compaction_trigger}
    return {**context.body, "compaction": None if live is None else status}


def mismatch_error(lossy: Lossy, own: str, target: str) -> ApiError:
    """400: the context can only be read in the format it is kept in."""
    return ApiError(
        400,
        "format_mismatch",
        f"This conversation is kept in {own} format, and this has no equal in {target} format: {lossy}.",
        attr="format",
    )


def overflow_error(overflow: Overflow, terms: Any) -> ApiError:
    """422: nothing can make this context fit; the numbers say what is too big."""
    numbers = {name: terms.shown(raw) for name, raw in overflow.numbers.items()}
    return ApiError(
        422,
        "context_overflow",
        "System, tools and the last user request alone do not fit in window - reserve; `numbers` has their tokens. "
        "Erase the request (DELETE .../messages?from=<position>, or .../messages/<position>) and send a shorter one, "
        "PATCH `system` or `tools` to shorter ones, or take a model with a larger window.",
        extra={"numbers": numbers},
    )
