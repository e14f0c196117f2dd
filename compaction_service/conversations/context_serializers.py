"""Shapes of contexts, meters and counts on the wire (api.md)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StrictSerializer
from compaction_service.conversations.fields import (
    MAX_BATCH,
    ProviderObject,
    StorableCharField,
    SystemField,
    ToolsField,
)
from compaction_service.conversations.models import Format


class Breakdown(serializers.Serializer[Any]):
    """Tokens of a context by part."""

    system = serializers.IntegerField(help_text="The system prompt and what any request costs.")
    tools = serializers.IntegerField(help_text="Tool definitions.")
    summaries = serializers.IntegerField(help_text="Active summaries.")
    carried = serializers.IntegerField(help_text="Covered messages shown verbatim.")
    tail = serializers.IntegerField(help_text="Messages after the last covered one.")


class MeterOut(serializers.Serializer[Any]):
    """How full the context is."""

    tokens = serializers.IntegerField(help_text="Of the whole context.")
    limit = serializers.IntegerField(help_text="A compaction is due here.")
    window = serializers.IntegerField(help_text="The model's input window.")
    utilization = serializers.FloatField(help_text="tokens / limit")
    method = serializers.ChoiceField(choices=["exact", "estimate", "calibrated"], help_text="How tokens are counted.")
    window_source = serializers.ChoiceField(
        choices=["registry", "override", "request"], help_text="Where the window is from."
    )
    breakdown = Breakdown(help_text="Tokens by part.")


class CompactionRef(serializers.Serializer[Any]):
    """A live compaction."""

    id = serializers.UUIDField(help_text="Ask `/v1/compactions/{id}` for more.")
    status = serializers.CharField(help_text="queued or running.")
    trigger = serializers.CharField(help_text="Why it was asked for.")


class Span(serializers.Serializer[Any]):
    """Positions, both ends included."""

    def get_fields(self) -> dict[str, Any]:
        # `from` is a keyword of Python.
        return {
            "from": serializers.IntegerField(help_text="First position."),
            "to": serializers.IntegerField(help_text="Last position."),
        }


class ContextOut(serializers.Serializer[Any]):
    """What to send to the model next."""

    system = SystemField(help_text="Apart from the messages where the format wants it so; else null.")
    messages = serializers.ListField(child=ProviderObject(), help_text="Ready to be sent, system message included.")
    tools = ToolsField(help_text="As given.")
    meter = MeterOut(help_text="Of this context.")
    fits = serializers.BooleanField(help_text="At most window - reserve by our count.")
    degraded = serializers.BooleanField(help_text="Made to fit without a model, for this answer only.")
    context_version = serializers.CharField(help_text="Send it back with the response and its usage.")
    summaries = serializers.ListField(child=serializers.UUIDField(), help_text="Nodes shown, oldest first.")
    covered = Span(allow_null=True, help_text="Positions that summaries stand for.")
    carried = serializers.ListField(child=serializers.IntegerField(), help_text="Covered positions shown verbatim.")
    masked = serializers.ListField(child=serializers.IntegerField(), help_text="Positions with masked results.")
    compaction = CompactionRef(allow_null=True, help_text="The live one.")


class CountIn(StrictSerializer):
    """A context to count; nothing of it is stored."""

    model = StorableCharField(max_length=255, help_text="The model to count for, as litellm names it.")
    format = ChoiceField(choices=Format.choices, default=Format.OPENAI, help_text="Of the messages.")
    messages = serializers.ListField(
        child=ProviderObject(), max_length=MAX_BATCH, help_text="Messages in the provider's format."
    )
    system = SystemField(required=False, allow_null=True, help_text="The system prompt.")
    tools = ToolsField(required=False, allow_null=True, help_text="The agent's tools.")


class CountBreakdown(serializers.Serializer[Any]):
    """Tokens by part."""

    system = serializers.IntegerField(help_text="The system prompt and what any request costs.")
    tools = serializers.IntegerField(help_text="Tool definitions.")
    messages = serializers.IntegerField(help_text="All messages.")


class CountOut(serializers.Serializer[Any]):
    """How many tokens it has."""

    tokens = serializers.IntegerField(help_text="All of it.")
    method = serializers.ChoiceField(choices=["exact", "estimate"], help_text="How tokens are counted.")
    model = serializers.CharField(help_text="The registry's name of the model.")
    breakdown = CountBreakdown(help_text="Tokens by part.")
