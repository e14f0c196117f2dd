"""The endpoints of conversations and their messages (api.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.api.views import TenantView
from compaction_service.conversations import answers, contexts, editing, filters, forking, selectors, services
from compaction_service.conversations.appending import AppendRequest, messages_append
from compaction_service.conversations.counting import tokens_count
from compaction_service.conversations.examples import (
    APPEND,
    APPENDED,
    CONTEXT,
    CONVERSATION,
    CONVERSATIONS,
    COUNT,
    COUNTED,
    CREATE,
    ERASED,
    FORK,
    MESSAGE,
    MESSAGES,
    PIN,
    RECEIPT,
    UPDATE,
)
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.serializers import (
    AppendedOut,
    ContextOut,
    ConversationIn,
    ConversationOut,
    ConversationPatch,
    CountIn,
    CountOut,
    ErasureOut,
    ForkIn,
    MessageOut,
    MessagePatch,
    MessagesIn,
    Receipt,
    details_of,
)
from compaction_service.conversations.terms import terms_of
from compaction_service.conversations.waiting import wait_until
from compaction_service.engine.fit import Overflow
from compaction_service.engine.formats.converting import Lossy

REF = OpenApiParameter("ref", str, OpenApiParameter.PATH, description="The conversation's id, or `ext:<external_id>`.")
REWIND = OpenApiParameter("from", filters.POSITION, required=True, description="The first position to erase.")
POSITION = OpenApiParameter("position", int, OpenApiParameter.PATH, description="The message's position.")

IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The ETag of an earlier answer: 304 if it still holds."
)
UNCHANGED = OpenApiResponse(description="The answer of this ETag still holds.")


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
        given = validated(MessagesIn(data=request.data))
        with_context = given.pop("return_context")
        given["details"] = details_of(given.get("details", []))
        done = messages_append(tenant=self.tenant, ref=ref, request=AppendRequest(**given))
        self.answer_conversation = done.conversation.id
        body = answers.appended(done)
        if with_context:
            body |= self._context(done.conversation)
        return Response(body, status=201)

    def _context(self, conversation: Conversation) -> dict[str, Any]:
        terms = terms_of(conversation, self.tenant.policy)
        try:
            return {"context": context_body(conversation, contexts.context_read(conversation, terms))}
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
                return self._answer(request, conversation, terms, asked)

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

    def _answer(
        self, request: Request, conversation: Conversation, terms: Any, asked: filters.ContextQuestion
    ) -> Response:
        target = asked.format or conversation.format
        tag = contexts.etag(conversation, terms, target)
        if request.headers.get("If-None-Match") == tag:
            return Response(status=304, headers={"ETag": tag})
        try:
            context = contexts.context_read(conversation, terms, target)
        except Lossy as lossy:
            raise mismatch_error(lossy, conversation.format, target) from None
        except Overflow as overflow:
            raise overflow_error(overflow, terms) from None
        return Response(context_body(conversation, context), headers={"ETag": tag})


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
        "System, tools and the last user request alone do not fit in window - reserve. Shorten them or take a model "
        "with a larger window.",
        extra={"numbers": numbers},
    )
