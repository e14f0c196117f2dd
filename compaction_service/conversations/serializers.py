"""Shapes of conversations and messages on the wire (api.md)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StorableJSONField, StrictSerializer
from compaction_service.conversations.context_serializers import CompactionRef, ContextOut, MeterOut
from compaction_service.conversations.fields import (
    MAX_BATCH,
    ExternalIdField,
    ProviderObject,
    StorableCharField,
    SystemField,
    ToolsField,
    no_slash,
)
from compaction_service.conversations.models import CompactionState, Format
from compaction_service.conversations.rows import Details


class DetailsIn(StrictSerializer):
    """What may be said beside a message."""

    pinned = serializers.BooleanField(default=False, help_text="Never summarised away: shown verbatim for ever.")
    external_id = ExternalIdField(help_text="Your id of the message.")
    occurred_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it was said, if not now; summaries give absolute dates by it."
    )
    metadata = StorableJSONField(required=False, help_text="Anything of yours.")


def details_of(given: list[dict[str, Any]]) -> list[Details]:
    return [Details(**{name: value for name, value in one.items() if value is not None}) for one in given]


class MessagesIn(StrictSerializer):
    """A batch to append, all or none of it."""

    messages = serializers.ListField(
        child=ProviderObject(), max_length=MAX_BATCH, help_text="Messages in the conversation's format, as they came."
    )
    details = serializers.ListField(
        child=DetailsIn(), required=False, max_length=MAX_BATCH, help_text="One entry per message."
    )
    usage = ProviderObject(required=False, allow_null=True, help_text="The provider's own usage object, as it came.")
    context_version = serializers.CharField(
        required=False, allow_null=True, max_length=64, help_text="Of the context the usage is about."
    )
    expected_last_position = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=2**31 - 1, help_text="Refuse with 409 unless it holds."
    )
    return_context = serializers.BooleanField(default=False, help_text="Answer with the context too.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = attrs.get("details")
        if given is not None and len(given) != len(attrs["messages"]):
            raise serializers.ValidationError(
                {"details": "Must have one entry per message, or be left out."}, code="length_mismatch"
            )
        return attrs


def window_field(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=256, max_value=100_000_000, help_text=help_text
    )


class ConversationIn(StrictSerializer):
    """A new conversation."""

    external_id = ExternalIdField(
        validators=[no_slash], help_text="Your id, without a slash; address it as `ext:<external_id>`, URL-encoded."
    )
    model = StorableCharField(max_length=255, help_text="The agent's model, as litellm names it.")
    format = ChoiceField(choices=Format.choices, default=Format.OPENAI, help_text="Of its messages; it stays.")
    system = SystemField(required=False, allow_null=True, help_text="The system prompt.")
    tools = ToolsField(required=False, allow_null=True, help_text="The agent's tools.")
    policy = serializers.DictField(required=False, allow_null=True, help_text="Policy fields of this conversation.")
    context_window = window_field(
        "The model's input window, where the registry does not know it or is to be overruled."
    )
    metadata = StorableJSONField(required=False, help_text="Anything of yours; lists filter by `metadata.<key>`.")
    messages = serializers.ListField(
        child=ProviderObject(), required=False, max_length=MAX_BATCH, help_text="First messages."
    )


class ForkIn(StrictSerializer):
    """Where to fork."""

    position = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The last position the new conversation takes over."
    )
    external_id = ExternalIdField(validators=[no_slash], help_text="Your id of the new conversation; no slash.")


class ConversationPatch(StrictSerializer):
    """Changes; what is left out stays."""

    fixed = {
        "format": "Create a conversation with the other `format`; to read this one in it, use `context?format=`.",
        "external_id": "Fork the conversation with another one, or create it anew.",
        "messages": "Append with POST .../messages; erase with DELETE .../messages.",
        **dict.fromkeys(("policy_sources", "meter", "message_count", "last_position"), "It follows from the others."),
        "compaction": "Ask for one with POST .../compactions.",
        **dict.fromkeys(("id", "created_at", "updated_at"), "The service sets it."),
    }
    model = StorableCharField(
        max_length=255, required=False, help_text="Another model; a larger `context_window` no longer counts."
    )
    context_window = window_field("Another input window; null: the model's own.")
    system = SystemField(required=False, allow_null=True, help_text="Another system prompt; null takes it away.")
    tools = ToolsField(required=False, allow_null=True, help_text="Other tools; null takes them away.")
    policy = serializers.DictField(required=False, help_text="Merged; null in it unsets a field.")
    metadata = StorableJSONField(required=False, help_text="Replaces the metadata.")


class MessagePatch(StrictSerializer):
    """Changes to what is said beside a message."""

    fixed = {
        **dict.fromkeys(
            ("message", "content", "role"),
            "Erase it and what follows (DELETE .../messages?from=<position>), then append it anew.",
        ),
        **dict.fromkeys(("external_id", "occurred_at"), "It is given in `details` when the message is appended."),
        **dict.fromkeys(("position", "tokens", "created_at"), "The service sets it."),
    }
    pinned = serializers.BooleanField(required=False, help_text="Show it verbatim for ever, or no longer.")
    abandoned = serializers.BooleanField(required=False, help_text="True: its open calls will get no result.")
    metadata = StorableJSONField(required=False, help_text="Replaces the metadata.")

    def validate_abandoned(self, value: bool) -> bool:
        if not value:
            raise serializers.ValidationError(
                "Only true can be set: an abandoned call stays abandoned.", code="invalid"
            )
        return value


class ConversationCompaction(serializers.Serializer[Any]):
    """Where the conversation's compactions stand."""

    state = serializers.ChoiceField(choices=CompactionState.choices, help_text="Of the live one.")
    live = serializers.UUIDField(allow_null=True, help_text="The live compaction.")
    last = serializers.UUIDField(allow_null=True, help_text="The newest one that ended.")


class ConversationOut(serializers.Serializer[Any]):
    """A conversation."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    external_id = serializers.CharField(allow_null=True, help_text="Your id.")
    model = serializers.CharField(help_text="The agent's model.")
    format = serializers.ChoiceField(choices=Format.choices, help_text="Of its messages.")
    system = SystemField(help_text="The system prompt as it came.")
    tools = ToolsField(help_text="The tools as they came.")
    metadata = serializers.DictField(help_text="Yours.")
    policy = serializers.DictField(help_text="The effective policy.")
    policy_sources = serializers.DictField(
        child=serializers.CharField(), help_text="Which level set each field: default, tenant or conversation."
    )
    message_count = serializers.IntegerField(help_text="Messages that are not erased.")
    last_position = serializers.IntegerField(help_text="The highest position ever handed out.")
    meter = MeterOut(help_text="How full the context is.")
    compaction = ConversationCompaction(help_text="Where its compactions stand.")
    created_at = serializers.DateTimeField(help_text="When it was created.")
    updated_at = serializers.DateTimeField(help_text="When it last changed.")


class AppendedMessage(serializers.Serializer[Any]):
    """A stored message, without its content."""

    position = serializers.IntegerField(help_text="In the conversation, from 1.")
    role = serializers.CharField(help_text="The provider's role.")
    tokens = serializers.IntegerField(help_text="Counted once, now.")
    created_at = serializers.DateTimeField(help_text="When it was stored.")


class MessageOut(AppendedMessage):
    """An original."""

    pinned = serializers.BooleanField(help_text="Shown verbatim for ever.")
    abandoned = serializers.BooleanField(help_text="Its open calls get no result.")
    external_id = serializers.CharField(allow_null=True, help_text="Your id.")
    occurred_at = serializers.DateTimeField(allow_null=True, help_text="When it was said.")
    metadata = serializers.DictField(help_text="Yours.")
    message = ProviderObject(help_text="As it came.")


class AppendedOut(serializers.Serializer[Any]):
    """What an append did."""

    messages = AppendedMessage(many=True, help_text="In order.")
    last_position = serializers.IntegerField(help_text="After the append.")
    meter = MeterOut(help_text="After the append.")
    compaction = CompactionRef(allow_null=True, help_text="Started by this append.")
    context = ContextOut(  # type: ignore[assignment]  # DRF keeps an attribute of this name
        required=False, allow_null=True, help_text="With `return_context`."
    )
    context_error = ProviderObject(required=False, help_text="Why there is no context.")


class ErasureOut(serializers.Serializer[Any]):
    """What was erased of a conversation, and how it stands now."""

    id = serializers.UUIDField(help_text="Of the conversation.")
    erased_at = serializers.DateTimeField(help_text="When.")
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="`messages` erased; `stubs_left` in their exchanges; `summaries` and `compactions` (log entries) "
        "that lost their texts; `idempotency_answers` forgotten.",
    )
    message_count = serializers.IntegerField(help_text="Messages that are not erased.")
    last_position = serializers.IntegerField(help_text="The highest position ever handed out; it does not go back.")
    meter = MeterOut(help_text="After the erasure.")
    compaction = CompactionRef(allow_null=True, help_text="The live one, perhaps started by this.")


class Receipt(serializers.Serializer[Any]):
    """What was erased."""

    id = serializers.UUIDField(help_text="Of the conversation.")
    erased_at = serializers.DateTimeField(help_text="When.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Rows gone, by kind.")
