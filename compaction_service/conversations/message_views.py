"""The endpoints of messages: originals, appends, flags, erasures (api.md)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.conversations import answers, contexts, editing, filters, selectors, services
from compaction_service.conversations.appending import AppendRequest, messages_append
from compaction_service.conversations.context_views import context_body, overflow_error
from compaction_service.conversations.examples import APPEND, APPENDED, ERASED, MESSAGE, MESSAGES, PIN
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.serializers import (
    AppendedOut,
    ErasureOut,
    MessageOut,
    MessagePatch,
    MessagesIn,
    details_of,
)
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.conversations.views import REF, ConversationView, validated
from compaction_service.engine.fit import Overflow
from compaction_service.engine.projection import Parts

REWIND = OpenApiParameter("from", filters.POSITION, required=True, description="The first position to erase.")
POSITION = OpenApiParameter("position", int, OpenApiParameter.PATH, description="The message's position.")


class MessageList(ConversationView):
    scopes = {"GET": "read", "POST": "write", "DELETE": "write"}
    audited = {"GET": "content.viewed", "DELETE": "conversation.rewound"}
    write_parameters = frozenset({"from"})  # of the rewind

    @extend_schema(
        operation_id="messages_list",
        summary="List originals",
        description="Messages as they came, by position.",
        parameters=[REF, *PARAMETERS, *filters.MESSAGE_PARAMETERS],
        responses=page_of(MessageOut, "MessagePage"),
        examples=[MESSAGES],
    )
    def get(self, request: Request, ref: str) -> Response:
        row = selectors.conversation_get(ref)
        found = filters.messages(Message.objects.filter(conversation_id=row.id), request.query_params)
        page = paginate(found, request.query_params, order="position")
        return Response({"data": [answers.message(one) for one in page.rows], "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="messages_append",
        summary="Append messages",
        description="A batch, all or none: after each response of the model, with its usage. Then read the context.",
        parameters=[REF],
        request=MessagesIn,
        responses={201: AppendedOut},
        examples=[APPEND, APPENDED],
    )
    def post(self, request: Request, ref: str) -> Response:
        given = MessagesIn.valid(request.data)
        with_context = given.pop("return_context")
        given["details"] = details_of(given.get("details", []))
        done = messages_append(tenant=self.tenant, ref=ref, request=AppendRequest(**given))
        self.answer_conversation = done.conversation.id
        body = answers.appended(done)
        if with_context:
            terms = terms_of(done.conversation, self.tenant.policy)
            parts = contexts.parts_stored(done.conversation, terms)
            self.add_to_answer(body, lambda: self._context(done.conversation, terms, parts))
        return Response(body, status=201)

    def _context(self, conversation: Conversation, terms: Terms, parts: Parts) -> dict[str, Any]:
        try:
            return {"context": context_body(conversation, contexts.context_read(conversation, terms, parts))}
        except Overflow as overflow:
            error = overflow_error(overflow, terms)
            told = {"code": "context_overflow", "detail": str(error.detail), **error.extra}
            return {"context": None, "context_error": told}

    @extend_schema(
        operation_id="messages_rewind",
        summary="Rewind",
        description=(
            'Erases the message at `from` and everything after it, as for "edit and resend". The next message gets '
            "`last_position` + 1. Summaries over what is gone become `stale`, their spans live again; calls that lost "
            "their results are open again, but for abandoned ones. May start a compaction."
        ),
        parameters=[REF, REWIND],
        responses={200: ErasureOut},
        examples=[ERASED],
    )
    def delete(self, request: Request, ref: str) -> Response:
        position = filters.whole(request.query_params, "from", least=1)
        if position is None:
            raise ApiError(
                400, "required", "Say from which position on. (DELETE the conversation to erase all.)", attr="from"
            )
        return Response(answers.erased(editing.conversation_rewind(tenant=self.tenant, ref=ref, position=position)))


class MessageDetail(ConversationView):
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "write"}
    audited = {"GET": "content.viewed", "PATCH": "message.changed", "DELETE": "message.erased"}

    @extend_schema(
        operation_id="messages_get",
        summary="Read one original",
        description="A message as it came.",
        parameters=[REF, POSITION],
        responses=MessageOut,
        examples=[MESSAGE],
    )
    def get(self, _request: Request, ref: str, position: int) -> Response:
        return Response(answers.message(selectors.message_get(selectors.conversation_get(ref), position)))

    @extend_schema(
        operation_id="messages_update",
        summary="Pin, abandon or annotate a message",
        description="The content of a stored message never changes.",
        parameters=[REF, POSITION],
        request=MessagePatch,
        responses=MessageOut,
        examples=[PIN, MESSAGE],
    )
    def patch(self, request: Request, ref: str, position: int) -> Response:
        changes = validated(MessagePatch(data=request.data))
        return Response(
            answers.message(services.flags_set(tenant=self.tenant, ref=ref, position=position, changes=changes))
        )

    @extend_schema(
        operation_id="messages_delete",
        summary="Erase a message",
        description=(
            "Its content is gone for good, and with it the texts of summaries and log entries made of it. Part of an "
            "exchange, it leaves a `[deleted]` stub in the context, else nothing; its position stays empty. A fork "
            "made before keeps its own copy. May start a compaction."
        ),
        parameters=[REF, POSITION],
        responses={200: ErasureOut},
        examples=[ERASED],
    )
    def delete(self, _request: Request, ref: str, position: int) -> Response:
        return Response(answers.erased(editing.message_erase(tenant=self.tenant, ref=ref, position=position)))
