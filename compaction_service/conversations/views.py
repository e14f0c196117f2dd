"""The endpoints of conversations, and counting what is not stored (api.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.api.views import TenantView
from compaction_service.conversations import answers, filters, forking, selectors, services
from compaction_service.conversations.context_serializers import CountIn, CountOut
from compaction_service.conversations.counting import tokens_count
from compaction_service.conversations.examples import (
    CONVERSATION,
    CONVERSATIONS,
    COUNT,
    COUNTED,
    CREATE,
    FORK,
    RECEIPT,
    UPDATE,
)
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.serializers import (
    ConversationIn,
    ConversationOut,
    ConversationPatch,
    ForkIn,
    Receipt,
)
from compaction_service.conversations.terms import terms_of

REF = OpenApiParameter("ref", str, OpenApiParameter.PATH, description="The conversation's id, or `ext:<external_id>`.")


def validated(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data


class ConversationView(TenantView):
    """A view below one conversation."""

    def audit_target(self) -> str:
        ref = str(self.kwargs["ref"])
        if not ref.startswith("ext:"):
            return f"conversation:{ref}"
        found = Conversation.objects.filter(selectors.by_ref(ref)).values_list("id", flat=True).first()
        return f"conversation:{found}" if found else ""


class ConversationList(TenantView):
    scopes = {"GET": "read", "POST": "write"}

    @extend_schema(
        operation_id="conversations_list",
        summary="List conversations",
        description="Newest first. `?metadata.<key>=<text>` lists those whose metadata has this text under the key.",
        parameters=[*PARAMETERS, *filters.CONVERSATION_PARAMETERS],
        responses=page_of(ConversationOut, "ConversationPage"),
        examples=[CONVERSATIONS],
    )
    def get(self, request: Request) -> Response:
        page = paginate(filters.conversations(Conversation.objects.all(), request.query_params), request.query_params)
        rows = [answers.conversation(row, terms_of(row, self.tenant.policy)) for row in page.rows]
        return Response({"data": rows, "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="conversations_create",
        summary="Create a conversation",
        description="With its first messages, all or nothing. A leading system message becomes its `system`.",
        request=ConversationIn,
        responses={201: ConversationOut},
        examples=[CREATE, CONVERSATION],
    )
    def post(self, request: Request) -> Response:
        given = validated(ConversationIn(data=request.data))
        done = services.conversation_create(tenant=self.tenant, new=services.NewConversation(**given))
        self.answer_conversation = done.conversation.id
        body = answers.conversation(done.conversation, done.terms)
        return Response(body, status=201, headers={"Location": f"/v1/conversations/{done.conversation.id}"})


class ConversationDetail(ConversationView):
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "write"}
    audited = {"GET": "content.viewed", "PATCH": "conversation.changed", "DELETE": "conversation.erased"}

    @extend_schema(
        operation_id="conversations_get",
        summary="Read a conversation",
        description="With its effective policy, where each field of it was set, and the meter.",
        parameters=[REF],
        responses=ConversationOut,
        examples=[CONVERSATION],
    )
    def get(self, _request: Request, ref: str) -> Response:
        row = selectors.conversation_get(ref)
        return Response(answers.conversation(row, terms_of(row, self.tenant.policy)))

    @extend_schema(
        operation_id="conversations_update",
        summary="Change a conversation",
        description="Model, system, tools, policy (merged; null unsets) or metadata. May start a compaction.",
        parameters=[REF],
        request=ConversationPatch,
        responses=ConversationOut,
        examples=[UPDATE, CONVERSATION],
    )
    def patch(self, request: Request, ref: str) -> Response:
        changes = validated(ConversationPatch(data=request.data))
        done = services.conversation_update(tenant=self.tenant, ref=ref, changes=changes)
        return Response(answers.conversation(done.conversation, done.terms))

    @extend_schema(
        operation_id="conversations_delete",
        summary="Erase a conversation",
        description="Messages, summaries, log texts, queued work and stored answers. Answers with a receipt of counts.",
        parameters=[REF],
        responses={200: Receipt},
        examples=[RECEIPT],
    )
    def delete(self, _request: Request, ref: str) -> Response:
        return Response(services.conversation_erase(ref=ref))


class Fork(TenantView):
    scopes = {"POST": "write"}

    @extend_schema(
        operation_id="conversations_fork",
        summary="Fork a conversation",
        description=(
            "A new conversation with the messages up to `position`, at the same positions, and the summaries that end "
            "there or before; the rest is live. System, tools, policy, model and metadata are copied. Their log "
            "entries are copied too, marked `copied_from` in their notes, at no cost. May start a compaction."
        ),
        parameters=[REF],
        request=ForkIn,
        responses={201: ConversationOut},
        examples=[FORK, CONVERSATION],
    )
    def post(self, request: Request, ref: str) -> Response:
        given = validated(ForkIn(data=request.data))
        done = forking.conversation_fork(tenant=self.tenant, ref=ref, **given)
        self.answer_conversation = done.conversation.id
        body = answers.conversation(done.conversation, done.terms)
        return Response(body, status=201, headers={"Location": f"/v1/conversations/{done.conversation.id}"})


class Transcript(ConversationView):
    scopes = {"GET": "read"}
    own_transactions = frozenset({"GET"})

    @extend_schema(
        operation_id="conversations_transcript",
        summary="Stream all originals",
        description="JSON Lines, one original a line, in order.",
        parameters=[REF],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, _request: Request, ref: str) -> HttpResponseBase:
        with self.scope():
            row = selectors.conversation_get(ref)
            self.note("content.viewed")
        return StreamingHttpResponse(self._lines(row), content_type="application/x-ndjson")

    def _lines(self, row: Conversation) -> Iterator[bytes]:
        """A page a transaction: a slow reader holds no connection."""
        after = 0
        while True:
            with self.scope():
                page = list(
                    Message.objects.filter(conversation_id=row.id, position__gt=after, erased_at=None).order_by(
                        "position"
                    )[:500]
                )
            if not page:
                return
            after = page[-1].position
            yield b"".join(answers.line(message) for message in page)


class TokenCount(TenantView):
    scopes = {"POST": "read"}

    @extend_schema(
        operation_id="tokens_count",
        summary="Count tokens",
        description="Of a context that is not stored, as the meter would show it before any calibration.",
        request=CountIn,
        responses=CountOut,
        examples=[COUNT, COUNTED],
    )
    def post(self, request: Request) -> Response:
        return Response(tokens_count(**validated(CountIn(data=request.data))))
