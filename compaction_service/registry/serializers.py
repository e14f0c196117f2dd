"""Shapes of `/v1/models`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StrictSerializer
from compaction_service.engine.policy import Policy, limit
from compaction_service.registry.catalogue import PRICE_PLACES
from compaction_service.registry.models import Model, Source
from compaction_service.tokens.families import TOKENIZERS


class OverrideSerializer(StrictSerializer):
    """Values to set by hand; null gives litellm's back, what is left out stays."""

    context_window = serializers.IntegerField(
        allow_null=True, required=False, min_value=1, max_value=2**31 - 1, help_text="Input tokens."
    )
    max_output = serializers.IntegerField(
        allow_null=True, required=False, min_value=1, max_value=2**31 - 1, help_text="Output tokens of one answer."
    )
    tokenizer = ChoiceField(
        choices=TOKENIZERS, allow_null=True, required=False, help_text="The encoding that counts its tokens."
    )
    factor = serializers.FloatField(
        allow_null=True, required=False, min_value=0.1, max_value=10, help_text="Its tokens for one of the encoding."
    )
    input_price = serializers.FloatField(
        allow_null=True, required=False, min_value=0, max_value=1, help_text="US dollars per token."
    )
    output_price = serializers.FloatField(
        allow_null=True, required=False, min_value=0, max_value=1, help_text="US dollars per token."
    )


class DriftSerializer(serializers.Serializer[Any]):
    """What a sync did, in models."""

    added = serializers.IntegerField(help_text="New ones.")
    changed = serializers.IntegerField(help_text="With another value than before.")
    same = serializers.IntegerField(help_text="As they were.")
    absent = serializers.IntegerField(help_text="That the file no longer has; they stay.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "gpt-4o",
            {
                "name": "gpt-4o",
                "provider": "openai",
                "context_window": 128_000,
                "max_output": 16_384,
                "tokenizer": "o200k_base",
                "method": "exact",
                "factor": 1.0,
                "input_price": "0.0000025",
                "output_price": "0.00001",
                "default_limit": 102_400,
                "source": "litellm",
                "overridden": [],
                "updated_at": "2026-11-30T12:00:00Z",
            },
        )
    ]
)
class ModelSerializer(serializers.ModelSerializer[Model]):
    """A model of the registry."""

    name = serializers.CharField(help_text="As litellm names it.")
    provider = serializers.CharField(help_text="Who serves it.")
    context_window = serializers.IntegerField(allow_null=True, help_text="Input tokens; null: give `context_window`.")
    max_output = serializers.IntegerField(allow_null=True, help_text="Output tokens of one answer.")
    tokenizer = serializers.ChoiceField(
        choices=TOKENIZERS, help_text="The encoding that counts its tokens, and its family where they differ."
    )
    method = serializers.ChoiceField(
        source="spec.method", choices=("exact", "estimate"), help_text="How its tokens are counted before calibration."
    )
    factor = serializers.FloatField(help_text="Its tokens for one of the encoding, before calibration.")
    input_price = serializers.DecimalField(
        max_digits=16,
        decimal_places=PRICE_PLACES,
        coerce_to_string=False,
        allow_null=True,
        help_text="US dollars per token; null: not known.",
    )
    output_price = serializers.DecimalField(
        max_digits=16,
        decimal_places=PRICE_PLACES,
        coerce_to_string=False,
        allow_null=True,
        help_text="US dollars per token; null: not known.",
    )
    default_limit = serializers.SerializerMethodField(
        help_text="Context tokens at which the default policy compacts; null without a window."
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]  # DRF's own name for something else
        choices=Source.choices, help_text="`override`: some values were set by hand."
    )
    overridden = serializers.ListField(child=serializers.CharField(), help_text="The fields set by hand.")

    updated_at = serializers.DateTimeField(help_text="When a value last changed.")

    class Meta:
        model = Model
        fields = [
            "name", "provider", "context_window", "max_output", "tokenizer", "method", "factor", "input_price",
            "output_price", "default_limit", "source", "overridden", "updated_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_default_limit(self, model: Model) -> int | None:
        if model.context_window is None:
            return None
        return limit(Policy(), model.context_window, model.max_output).limit
