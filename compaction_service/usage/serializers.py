"""Shapes of `/v1/usage`."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction_service.usage.models import OUTCOMES
from compaction_service.usage.selectors import GROUPS


class OutcomeCounts(serializers.Serializer[Any]):
    """Compactions by how they ended."""

    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.IntegerField(help_text=f"Ended as {name}.") for name in OUTCOMES}


class UsageRow(serializers.Serializer[Any]):
    """What one day, model or conversation used."""

    key = serializers.CharField(help_text="The day (UTC), the model's name, or the conversation's id.")
    messages = serializers.IntegerField(help_text="Messages stored.")
    tokens = serializers.IntegerField(help_text="Tokens stored, by the encoding's own count.")
    compactions = OutcomeCounts(help_text="Compactions that ended, by outcome.")
    tokens_saved = serializers.IntegerField(help_text="Tokens that applied compactions replaced, less their summaries.")
    calls = serializers.IntegerField(help_text="Calls to summarisers, failed and late ones included.")
    llm_tokens_in = serializers.IntegerField(help_text="Sent in those calls.")
    llm_tokens_out = serializers.IntegerField(help_text="Got in their answers.")
    cost = serializers.DecimalField(
        max_digits=14, decimal_places=8, coerce_to_string=False, help_text="US dollars, as far as prices are known."
    )


def _dollars(text: str, *, nullable: bool = False) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=18, decimal_places=8, coerce_to_string=False, allow_null=nullable, help_text=text
    )


class Budget(serializers.Serializer[Any]):
    """Money for models in this calendar month (UTC), US dollars, as far as prices are known."""

    month = serializers.DateField(help_text="Its first day.")
    limit = _dollars("Set by the platform; null: no limit.", nullable=True)
    spent = _dollars("For calls that have ended, failed and late ones included.")
    reserved = _dollars("Put aside for calls that are being made.")
    remaining = _dollars("What is left; null: no limit.", nullable=True)
    exhausted_at = serializers.DateTimeField(
        allow_null=True, help_text="When the limit first did not pay a call; null: it has paid all of them."
    )


class UsagePage(serializers.Serializer[Any]):
    """Usage over a range of days."""

    def get_fields(self) -> dict[str, Any]:
        # `from` is a keyword of Python.
        return {
            "from": serializers.DateField(help_text="First day, UTC."),
            "to": serializers.DateField(help_text="Last day, included."),
            "group_by": serializers.ChoiceField(choices=GROUPS, help_text="What a row adds up."),
            "budget": Budget(help_text="Of the current month, whatever the days asked for."),
            "data": UsageRow(many=True, help_text="In order of their keys."),
            "next_cursor": serializers.CharField(allow_null=True, help_text="Ask with `?cursor=` for what follows."),
        }
