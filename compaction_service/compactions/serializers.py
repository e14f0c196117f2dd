"""Shapes of compactions and summary nodes on the wire (api.md)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StrictSerializer
from compaction_service.compactions.models import (
    Method,
    NodeState,
    Outcome,
    PassKind,
    PassStatus,
    Review,
    Status,
    Trigger,
)
from compaction_service.conversations.context_serializers import Breakdown, Span
from compaction_service.conversations.fields import StorableCharField
from compaction_service.usage.serializers import OutcomeCounts

LONGEST_TEXT = 10_000  # characters of focus and instructions


class OverflowIn(StrictSerializer):
    """What the provider said when it refused the context."""

    input_tokens = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Tokens of the context by its count."
    )
    max_tokens = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="The most it takes: the window, for this compaction, where it is less.",
    )


class CompactionIn(StrictSerializer):
    """A request for a compaction. All fields are optional."""

    focus = StorableCharField(
        required=False, allow_blank=True, max_length=LONGEST_TEXT, help_text="What the summary should dwell on."
    )
    instructions = StorableCharField(
        required=False, allow_blank=True, max_length=LONGEST_TEXT, help_text="More for the summariser, this once."
    )
    strategy = serializers.CharField(required=False, help_text="Instead of the policy's.")
    preserve_recent_turns = serializers.IntegerField(
        required=False, min_value=0, max_value=1_000_000, help_text="Instead of the policy's."
    )
    up_to = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Cover up to this position; moved back to an edge."
    )
    trigger = ChoiceField(
        choices=[Trigger.MANUAL.value, Trigger.OVERFLOW.value], default=Trigger.MANUAL.value, help_text="Why you ask."
    )
    overflow = OverflowIn(required=False, help_text="With trigger overflow: the provider's numbers.")
    dry_run = serializers.BooleanField(default=False, help_text="Answer with the plan; change nothing, call no model.")
    wait = serializers.FloatField(
        default=0, min_value=0, max_value=60, help_text="Seconds to wait for its end at most."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "overflow" in attrs and attrs["trigger"] != Trigger.OVERFLOW:
            raise serializers.ValidationError({"overflow": "Goes with `trigger: overflow` only."}, code="invalid")
        return attrs


class ContextTokens(serializers.Serializer[Any]):
    """Tokens of the context at one moment."""

    tokens = serializers.IntegerField(help_text="Of the whole context.")
    breakdown = Breakdown(help_text="By part.")


class PassOut(serializers.Serializer[Any]):
    """One pass: a model call's worth of work."""

    kind = serializers.ChoiceField(choices=PassKind.choices, help_text="What it did.")
    number = serializers.IntegerField(help_text="In order, from 1.")
    status = serializers.ChoiceField(choices=PassStatus.choices, help_text="How far it is.")
    model = serializers.CharField(allow_null=True, help_text="Null: extractive, without a model.")
    tokens_in = serializers.IntegerField(help_text="By the provider's count.")
    tokens_out = serializers.IntegerField(help_text="By the provider's count.")
    cost = serializers.DecimalField(
        max_digits=14,
        decimal_places=8,
        coerce_to_string=False,
        allow_null=True,
        help_text="US dollars; null: the price is not known.",
    )
    error = serializers.CharField(allow_null=True, help_text="A stable code.")
    from_position = serializers.IntegerField(allow_null=True, help_text="First position in its input.")
    to_position = serializers.IntegerField(allow_null=True, help_text="Last position in its input.")
    started_at = serializers.DateTimeField(allow_null=True, help_text="When it was last started.")
    duration_ms = serializers.IntegerField(allow_null=True, help_text="Of the last start.")


class CompactionOut(serializers.Serializer[Any]):
    """A compaction: a job while it is live, a log entry for ever.

    What its `transparency` leaves out, and texts that are past `log_retention`, are null or empty.
    """

    id = serializers.UUIDField(help_text="Time-ordered.")
    conversation = serializers.UUIDField(help_text="Its conversation.")
    status = serializers.ChoiceField(choices=Status.choices, help_text="How far it is.")
    outcome = serializers.ChoiceField(choices=Outcome.choices, allow_null=True, help_text="Once it has ended.")
    reason = serializers.CharField(allow_null=True, help_text="Why this outcome; a stable code.")
    trigger = serializers.ChoiceField(choices=Trigger.choices, help_text="Why it was asked for.")
    requested_by = serializers.CharField(allow_null=True, help_text="Who asked.")
    strategy = serializers.CharField(allow_null=True, help_text="How summaries build on each other.")
    policy = serializers.DictField(help_text="The effective policy it ran under.")
    focus = serializers.CharField(allow_null=True, help_text="What the summary should dwell on.")
    instructions = serializers.CharField(allow_null=True, help_text="More for the summariser.")
    from_position = serializers.IntegerField(allow_null=True, help_text="First covered position.")
    to_position = serializers.IntegerField(allow_null=True, help_text="Last covered position.")
    from_turn = serializers.IntegerField(allow_null=True, help_text="First covered turn.")
    to_turn = serializers.IntegerField(allow_null=True, help_text="Last covered turn.")
    model = serializers.CharField(allow_null=True, help_text="Of the summary.")
    method = serializers.ChoiceField(choices=Method.choices, allow_null=True, help_text="How the summary was made.")
    fallback_reason = serializers.CharField(allow_null=True, help_text="Why it is not the first model's.")
    context_before = ContextTokens(allow_null=True, help_text="At the apply, before it.")
    context_after = ContextTokens(allow_null=True, help_text="At the apply, after it.")
    tokens_in = serializers.IntegerField(allow_null=True, help_text="Tokens replaced.")
    tokens_out = serializers.IntegerField(allow_null=True, help_text="Tokens of the summary.")
    compression_ratio = serializers.FloatField(allow_null=True, help_text="tokens_in / tokens_out")
    target_reached = serializers.BooleanField(allow_null=True, help_text="Whether the context came under its target.")
    summary = serializers.CharField(allow_null=True, help_text="Its text, without the notes of hybrid.")
    sections = serializers.ListField(child=serializers.DictField(), help_text="The text by section.")
    dropped_content = serializers.ListField(
        child=serializers.DictField(),
        help_text="Requests and identifiers of the span, and of the summaries it replaces, that the summary does not "
        "have. `position` is null where an older summary did not tell it.",
    )
    entities = serializers.ListField(child=serializers.CharField(), help_text="Names the summary kept.")
    notes = serializers.ListField(
        child=serializers.DictField(), help_text="What became of each note (hybrid), and what else is to be said of it."
    )
    passes = PassOut(many=True, help_text="In order.")
    llm_tokens_in = serializers.IntegerField(help_text="Of all calls, failed and late ones too.")
    llm_tokens_out = serializers.IntegerField(help_text="Of all calls, failed and late ones too.")
    cost = serializers.DecimalField(
        max_digits=14,
        decimal_places=8,
        coerce_to_string=False,
        allow_null=True,
        help_text="US dollars, as far as prices are known.",
    )
    queued_ms = serializers.IntegerField(allow_null=True, help_text="From the request to the start.")
    duration_ms = serializers.IntegerField(allow_null=True, help_text="From the start to the end.")
    review = serializers.ChoiceField(choices=Review.choices, help_text="What a reviewer said.")
    reverted_at = serializers.DateTimeField(allow_null=True, help_text="When it was undone.")
    created_at = serializers.DateTimeField(help_text="When it was asked for.")
    started_at = serializers.DateTimeField(allow_null=True, help_text="When a worker began.")
    finished_at = serializers.DateTimeField(allow_null=True, help_text="When it ended.")


class PlanOut(serializers.Serializer[Any]):
    """What a compaction would do."""

    span = Span(allow_null=True, help_text="What it would cover; null: nothing.")
    irreducible = serializers.CharField(allow_null=True, help_text="Why there is nothing to cover.")
    kept = serializers.ListField(child=serializers.IntegerField(), help_text="Positions that would stay live.")
    carried = serializers.ListField(
        child=serializers.IntegerField(), help_text="Positions shown verbatim all the same."
    )
    tokens = serializers.IntegerField(help_text="Of the context now.")
    predicted_tokens = serializers.IntegerField(help_text="Of the context then, the summary at its target length.")
    target_reached = serializers.BooleanField(help_text="Whether that is under the target.")
    summary_target = serializers.IntegerField(help_text="Tokens the summary would be asked to have.")
    model = serializers.CharField(allow_null=True, help_text="Who would write it; null: extractive.")
    chunks = serializers.IntegerField(help_text="Calls to read the span; with hybrid once more for the notes.")
    estimated_cost = serializers.DecimalField(
        max_digits=14,
        decimal_places=8,
        coerce_to_string=False,
        allow_null=True,
        help_text="US dollars; null: the price is not known.",
    )


class AskedOut(CompactionOut):
    """The compaction a request got. A dry run has a `plan` and no id."""

    joined = serializers.BooleanField(help_text="Whether one was live already.")


class DryRunOut(serializers.Serializer[Any]):
    """The answer of a dry run."""

    dry_run = serializers.BooleanField(help_text="True.")
    plan = PlanOut(help_text="What would be done.")


class StatsOut(serializers.Serializer[Any]):
    """What all compactions of a conversation come to."""

    conversation = serializers.UUIDField(help_text="Whose.")
    compactions = serializers.IntegerField(help_text="Entries of the log.")
    live = serializers.IntegerField(help_text="Of them, queued or running: 0 or 1.")
    reverted = serializers.IntegerField(help_text="Of them, undone.")
    outcomes = OutcomeCounts(help_text="Those that ended, by outcome.")
    tokens_in = serializers.IntegerField(help_text="Tokens that applied ones replaced.")
    tokens_out = serializers.IntegerField(help_text="Tokens of their summaries.")
    compression_ratio = serializers.FloatField(allow_null=True, help_text="Mean of the applied ones' ratios.")
    duration_ms = serializers.IntegerField(allow_null=True, help_text="Mean of the applied ones, start to end.")
    llm_tokens_in = serializers.IntegerField(help_text="Of all calls to models.")
    llm_tokens_out = serializers.IntegerField(help_text="Of all calls to models.")
    cost = serializers.DecimalField(
        max_digits=14, decimal_places=8, coerce_to_string=False, help_text="US dollars, as far as prices are known."
    )
    entities = serializers.ListField(
        child=serializers.CharField(), help_text="Names that summaries kept, those in most summaries first."
    )
    oldest = serializers.DateTimeField(allow_null=True, help_text="When the first was asked for.")
    newest = serializers.DateTimeField(allow_null=True, help_text="When the last was asked for.")


class SummaryOut(serializers.Serializer[Any]):
    """A node of the summary chain."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    conversation = serializers.UUIDField(help_text="Its conversation.")
    compaction = serializers.UUIDField(help_text="The compaction that made it.")
    level = serializers.IntegerField(help_text="0: made of messages; above: of nodes.")
    from_position = serializers.IntegerField(help_text="First position it stands for.")
    to_position = serializers.IntegerField(help_text="Last position it stands for.")
    from_turn = serializers.IntegerField(help_text="First turn.")
    to_turn = serializers.IntegerField(help_text="Last turn.")
    text = serializers.CharField(help_text="As the context shows it.")
    sections = serializers.ListField(child=serializers.DictField(), help_text="The text by section.")
    tokens = serializers.IntegerField(help_text="As the context shows it.")
    method = serializers.ChoiceField(choices=Method.choices, help_text="How it was made.")
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF keeps an attribute of this name
        allow_null=True, help_text="The node it was merged into."
    )
    children = serializers.ListField(child=serializers.UUIDField(), help_text="Nodes merged into it.")
    entities = serializers.ListField(child=serializers.CharField(), help_text="Names in it.")
    state = serializers.ChoiceField(choices=NodeState.choices, help_text="Only active nodes are shown.")
    created_at = serializers.DateTimeField(help_text="When it was made.")


class PlatformCompactionOut(serializers.Serializer[Any]):
    """A compaction as the platform lists it: no texts."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    tenant = serializers.UUIDField(source="tenant_id", help_text="Whose it is.")
    conversation = serializers.UUIDField(source="conversation_id", help_text="Its conversation.")
    status = serializers.ChoiceField(choices=Status.choices, help_text="How far it is.")
    outcome = serializers.CharField(help_text="How it ended; empty while it is live.")
    reason = serializers.CharField(help_text="Why this outcome; a stable code.")
    trigger = serializers.ChoiceField(choices=Trigger.choices, help_text="Why it was asked for.")
    strategy = serializers.CharField(help_text="How summaries build on each other.")
    model = serializers.CharField(help_text="Of the summary.")
    method = serializers.CharField(help_text="How the summary was made.")
    fallback_reason = serializers.CharField(help_text="Why it is not the first model's.")
    from_position = serializers.IntegerField(allow_null=True, help_text="First covered position.")
    to_position = serializers.IntegerField(allow_null=True, help_text="Last covered position.")
    tokens_in = serializers.IntegerField(allow_null=True, help_text="Tokens replaced.")
    tokens_out = serializers.IntegerField(allow_null=True, help_text="Tokens of the summary.")
    llm_tokens_in = serializers.IntegerField(help_text="Of all calls, failed and late ones too.")
    llm_tokens_out = serializers.IntegerField(help_text="Of all calls, failed and late ones too.")
    cost = serializers.DecimalField(
        14, 8, allow_null=True, coerce_to_string=False, help_text="US dollars; null: not told."
    )
    review = serializers.ChoiceField(choices=Review.choices, help_text="What a reviewer said.")
    created_at = serializers.DateTimeField(help_text="When it was asked for.")
    started_at = serializers.DateTimeField(allow_null=True, help_text="When a worker began.")
    finished_at = serializers.DateTimeField(allow_null=True, help_text="When it ended.")


class PlatformEntryOut(CompactionOut):
    """A log entry, whole."""

    tenant = serializers.UUIDField(help_text="Whose it is.")


class PlatformSummaryOut(serializers.Serializer[Any]):
    """A node of a summary chain as the platform lists it: no texts."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    tenant = serializers.UUIDField(source="tenant_id", help_text="Whose it is.")
    conversation = serializers.UUIDField(source="conversation_id", help_text="Its conversation.")
    compaction = serializers.UUIDField(source="compaction_id", help_text="The compaction that made it.")
    level = serializers.IntegerField(help_text="0: made of messages; above: of nodes.")
    from_position = serializers.IntegerField(help_text="First position it stands for.")
    to_position = serializers.IntegerField(help_text="Last position it stands for.")
    tokens = serializers.IntegerField(help_text="As the context shows it.")
    method = serializers.ChoiceField(choices=Method.choices, help_text="How it was made.")
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF keeps an attribute of this name
        source="parent_id", allow_null=True, help_text="The node it was merged into."
    )
    state = serializers.ChoiceField(choices=NodeState.choices, help_text="Only active nodes are shown.")
    created_at = serializers.DateTimeField(help_text="When it was made.")


class PlatformNodeOut(SummaryOut):
    """A node of a summary chain, whole."""

    tenant = serializers.UUIDField(help_text="Whose it is.")
