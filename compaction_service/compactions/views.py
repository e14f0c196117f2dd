"""The endpoints of compactions and summaries (api.md)."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service import logs
from compaction_service.api.pagination import PARAMETERS, page_of, paginate
from compaction_service.api.views import TenantView
from compaction_service.compactions import answers, estimates, examples, selectors, services, stats
from compaction_service.compactions.models import LIVE, Compaction, Trigger
from compaction_service.compactions.reverting import compaction_get
from compaction_service.compactions.serializers import (
    AskedOut,
    CompactionIn,
    CompactionOut,
    DryRunOut,
    StatsOut,
    SummaryOut,
)
from compaction_service.compactions.services import Asked
from compaction_service.conversations import answers as conversation_answers
from compaction_service.conversations.examples import MESSAGES
from compaction_service.conversations.fields import OBJECT
from compaction_service.conversations.filters import choice
from compaction_service.conversations.models import Format
from compaction_service.conversations.selectors import conversation_get
from compaction_service.conversations.serializers import MessageOut
from compaction_service.conversations.views import REF, ConversationView, validated
from compaction_service.conversations.waiting import wait_until
from compaction_service.engine import compact_tool

COMPACTION_ID = OpenApiParameter("compaction_id", uuid.UUID, OpenApiParameter.PATH, description="The compaction's id.")
SUMMARY_ID = OpenApiParameter("summary_id", uuid.UUID, OpenApiParameter.PATH, description="The node's id.")
FORMAT = OpenApiParameter("format", str, enum=Format.values, default=Format.OPENAI.value, description="Whose tools.")


def one(row: Compaction) -> dict[str, Any]:
    return answers.compaction(row, selectors.passes_of([row])[row.id])


class ConversationCompactions(TenantView):
    scopes = {"POST": "write"}
    own_transactions = frozenset({"POST"})

    @extend_schema(
        operation_id="compactions_create",
        summary="Ask for a compaction",
        description=(
            "202 while it is queued or running; 200 when it ended within `wait`, when there is nothing to do "
            "(`irreducible`), and for a dry run. A request while one is live joins it (`joined`)."
        ),
        parameters=[REF],
        request=CompactionIn,
        responses={
            202: OpenApiResponse(AskedOut, description="It is queued or running; Location says where to ask."),
            200: OpenApiResponse(
                PolymorphicProxySerializer("AskedOrDryRun", [AskedOut, DryRunOut], resource_type_field_name=None),
                description="It has ended; or the plan of a dry run.",
            ),
        },
        examples=[examples.ASK, examples.ASKED, examples.ENDED, examples.DRY_RUN],
    )
    def post(self, request: Request, ref: str) -> Response:
        given = validated(CompactionIn(data=request.data))
        asked = _asked(given, str(self.principal))
        if given["dry_run"]:
            with self.scope():
                return Response({"dry_run": True, "plan": self._plan(ref, asked)})
        response = self.run(lambda: self._request(ref, asked))
        if response.status_code == 202 and given["wait"] and not response.headers.get("Idempotency-Replayed"):
            ended = wait_until(lambda: self._ended(response), given["wait"])
            return ended or response
        return response

    def _plan(self, ref: str, asked: Asked) -> dict[str, Any]:
        conversation, terms, planned = services.compaction_preview(self.tenant, ref, asked)
        return answers.plan(conversation, terms, planned, estimates.estimate(terms, planned, self.tenant))

    def _request(self, ref: str, asked: Asked) -> Response:
        row, joined = services.compaction_request(self.tenant, ref, asked)
        self.answer_conversation = row.conversation_id
        self.asked = (row.id, joined)
        status = 202 if row.status in LIVE else 200
        body = {**one(row), "joined": joined}
        return Response(body, status=status, headers={"Location": f"/v1/compactions/{row.id}"})

    def _ended(self, response: Response) -> Response | None:
        compaction_id, joined = self.asked
        with self.scope():
            row = Compaction.objects.filter(id=compaction_id).first()
            if row is None or row.status in LIVE:
                return None
            return Response({**one(row), "joined": joined}, status=200, headers={"Location": response["Location"]})


def _asked(given: dict[str, Any], requested_by: str) -> Asked:
    call: dict[str, Any] = {name: given[name] for name in ("strategy", "preserve_recent_turns") if name in given}
    overflow = given.get("overflow", {}) if given["trigger"] == Trigger.OVERFLOW else {}
    return Asked(
        trigger=Trigger(given["trigger"]),
        requested_by=requested_by,
        focus=given.get("focus", ""),
        instructions=given.get("instructions", ""),
        up_to=given.get("up_to"),
        policy=call,
        reported_tokens=overflow.get("input_tokens"),
        reported_max=overflow.get("max_tokens"),
        request_id=logs.request_id.get() or "",
    )


class CompactionList(TenantView):
    scopes = {"GET": "read"}
    audited = {"GET": "content.viewed"}

    @extend_schema(
        operation_id="compactions_list",
        summary="List compactions",
        description="Newest first.",
        parameters=[*PARAMETERS, *selectors.COMPACTION_PARAMETERS],
        responses={200: page_of(CompactionOut, "CompactionPage"), 404: None},
        examples=[examples.COMPACTIONS],
    )
    def get(self, request: Request) -> Response:
        page = paginate(selectors.compactions(request.query_params), request.query_params)
        passes = selectors.passes_of(page.rows)
        rows = [answers.compaction(row, passes[row.id]) for row in page.rows]
        return Response({"data": rows, "next_cursor": page.next_cursor})


class CompactionDetail(TenantView):
    scopes = {"GET": "read"}
    audited = {"GET": "content.viewed"}

    @extend_schema(
        operation_id="compactions_get",
        summary="Read a compaction",
        description="The job while it is live, the log entry ever after. With its passes.",
        parameters=[COMPACTION_ID],
        responses=CompactionOut,
        examples=[examples.COMPACTION],
    )
    def get(self, _request: Request, compaction_id: uuid.UUID) -> Response:
        return Response(one(compaction_get(compaction_id)))


class CompactionCancel(TenantView):
    scopes = {"POST": "write"}
    audited = {"POST": "compaction.cancelled"}

    @extend_schema(
        operation_id="compactions_cancel",
        summary="Cancel a live compaction",
        description="Its worker's result will be refused. 409 when it has ended.",
        parameters=[COMPACTION_ID],
        request=None,
        responses={200: CompactionOut, 409: None},
        examples=[examples.CANCELLED],
    )
    def post(self, _request: Request, compaction_id: uuid.UUID) -> Response:
        row = services.compaction_cancel(compaction_id)
        self.answer_conversation = row.conversation_id
        return Response(one(row))


class CompactionRevert(TenantView):
    scopes = {"POST": "write"}
    audited = {"POST": "compaction.reverted"}

    @extend_schema(
        operation_id="compactions_revert",
        summary="Undo the newest applied compaction",
        description="Its span is live again, what it superseded active. 409 for any but the newest, or with one live.",
        parameters=[COMPACTION_ID],
        request=None,
        responses={200: CompactionOut, 409: None},
        examples=[examples.REVERTED],
    )
    def post(self, _request: Request, compaction_id: uuid.UUID) -> Response:
        row = services.compaction_revert(self.tenant, compaction_id)
        self.answer_conversation = row.conversation_id
        return Response(one(row))


class SummaryList(ConversationView):
    scopes = {"GET": "read"}
    audited = {"GET": "content.viewed"}

    @extend_schema(
        operation_id="summaries_list",
        summary="List the summary chain",
        description="All nodes of a conversation, in every state, newest first.",
        parameters=[REF, *PARAMETERS, selectors.STATE_PARAMETER],
        responses=page_of(SummaryOut, "SummaryPage"),
        examples=[examples.SUMMARIES],
    )
    def get(self, request: Request, ref: str) -> Response:
        row = conversation_get(ref)
        page = paginate(selectors.summaries_of(row.id, request.query_params), request.query_params)
        children = selectors.children_of(page.rows)
        rows = [answers.summary(node, children[node.id]) for node in page.rows]
        return Response({"data": rows, "next_cursor": page.next_cursor})


class SummaryDetail(TenantView):
    scopes = {"GET": "read"}
    audited = {"GET": "content.viewed"}

    @extend_schema(
        operation_id="summaries_get",
        summary="Read a summary node",
        description="One node of the chain, in whatever state.",
        parameters=[SUMMARY_ID],
        responses=SummaryOut,
        examples=[examples.SUMMARY],
    )
    def get(self, _request: Request, summary_id: uuid.UUID) -> Response:
        node = selectors.summary_get(summary_id)
        return Response(answers.summary(node, selectors.children_of([node])[node.id]))


class SummaryMessages(TenantView):
    scopes = {"GET": "read"}
    audited = {"GET": "content.viewed"}

    @extend_schema(
        operation_id="summaries_messages",
        summary="List the originals behind a summary",
        description="By position, as they came.",
        parameters=[SUMMARY_ID, *PARAMETERS],
        responses=page_of(MessageOut, "SummaryMessagePage"),
        examples=[MESSAGES],
    )
    def get(self, request: Request, summary_id: uuid.UUID) -> Response:
        found = selectors.originals_of(selectors.summary_get(summary_id))
        page = paginate(found, request.query_params, order="position")
        rows = [conversation_answers.message(row) for row in page.rows]
        return Response({"data": rows, "next_cursor": page.next_cursor})


class ConversationStats(TenantView):
    scopes = {"GET": "read"}

    @extend_schema(
        operation_id="conversations_stats",
        summary="Add up a conversation's compactions",
        description="Counts by outcome, tokens, cost and means over its whole log.",
        parameters=[REF],
        responses=StatsOut,
        examples=[examples.STATS],
    )
    def get(self, _request: Request, ref: str) -> Response:
        return Response(stats.stats_of(conversation_get(ref).id))


class CompactTool(TenantView):
    scopes = {"GET": "read"}

    @extend_schema(
        operation_id="tools_compact",
        summary="The compact tool",
        description=(
            "The definition of a tool by which the model asks for a compaction itself: add the body to the "
            "conversation's tools as it is."
        ),
        parameters=[FORMAT],
        responses={200: OpenApiResponse(OBJECT, description="The tool, in the provider's format.")},
        examples=examples.TOOLS,
    )
    def get(self, request: Request) -> Response:
        return Response(compact_tool.definition(choice(request.query_params, "format", Format.values) or Format.OPENAI))
