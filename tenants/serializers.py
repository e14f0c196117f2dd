"""What the API takes and shows of tenants and keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compaction_service.api.serializers import ChoiceField, StorableJSONField, StrictSerializer
from compaction_service.llm.headers import is_reserved
from tenants.limits import limits_of
from tenants.models import Scope, Tenant

NAME_LENGTH = 200
MAX_OVERLAP = 7 * 24 * 3600  # seconds


class HeadersField(serializers.DictField):
    """Names and values of HTTP headers; nothing that could end a header line, or replace the provider's key."""

    child = serializers.CharField(max_length=4096, allow_blank=True)
    default_error_messages = {
        "header": "Not a header that can be sent.",
        "reserved": "The header {name} is set by the service and cannot be given.",
    }

    def to_internal_value(self, data: Any) -> Any:
        value: dict[str, str] = super().to_internal_value(data)
        for name, text in value.items():
            token = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
            if not token or not (text.isascii() and (text.isprintable() or not text)):
                self.fail("header")
            if is_reserved(name):
                self.fail("reserved", name=name)
        return value


class SummarizerSerializer(StrictSerializer):
    """The model that writes summaries. In a PATCH, null unsets a field."""

    model = serializers.CharField(
        max_length=200, allow_null=True, required=False, help_text="A litellm model name of a provider that is called."
    )
    fallback_models = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=8, allow_null=True, required=False,
        help_text="Tried in order when the model fails.",
    )  # fmt: skip
    api_base = serializers.CharField(
        max_length=2048, allow_null=True, required=False, help_text="Base URL of the provider; must be public HTTPS."
    )
    api_key = serializers.CharField(
        max_length=4096, allow_null=True, required=False, write_only=True, trim_whitespace=True,
        help_text="The provider's key. Stored encrypted, never shown; dropped when api_base changes without a new one.",
    )  # fmt: skip
    extra_headers = HeadersField(
        allow_null=True, required=False, help_text="Sent with every call; none that carry the key or frame the request."
    )


class SummarizerViewSerializer(serializers.Serializer[Any]):
    """The summarizer's settings as stored; fields that are not set are null."""

    model = serializers.CharField(allow_null=True, help_text="The model; null: summaries are extractive.")
    fallback_models = serializers.ListField(child=serializers.CharField(), help_text="Tried in order when it fails.")
    api_base = serializers.CharField(allow_null=True, help_text="Base URL of the provider; null: the provider's own.")
    api_key_set = serializers.BooleanField(help_text="Whether a provider's key is stored.")
    extra_headers = serializers.DictField(child=serializers.CharField(), help_text="Shown as they are.")


class LimitsSerializer(serializers.Serializer[Any]):
    """What the tenant may use; null: no limit. Set by the platform."""

    requests_per_minute = serializers.IntegerField(allow_null=True, help_text="Beyond it: 429.")
    max_body_bytes = serializers.IntegerField(help_text="Of one request; beyond it: 413.")
    max_message_bytes = serializers.IntegerField(allow_null=True, help_text="Of one message; beyond it: 413.")
    conversations = serializers.IntegerField(allow_null=True, help_text="Stored at once; beyond it: 403.")
    stored_tokens = serializers.IntegerField(allow_null=True, help_text="Of all stored messages; beyond it: 403.")
    compactions_in_flight = serializers.IntegerField(help_text="Model calls at once.")
    monthly_budget = serializers.DecimalField(
        16, 6, allow_null=True, coerce_to_string=False, help_text="US dollars of model calls in a calendar month, UTC."
    )


class TenantSerializer(serializers.Serializer[Any]):
    """A tenant as it sees itself."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    name = serializers.CharField(help_text="Given by the platform.")
    status = serializers.ChoiceField(Tenant.Status.choices, help_text="A suspended one is refused with 403.")
    policy = serializers.DictField(help_text="Policy fields set for all conversations of the tenant.")
    summarizer = serializers.SerializerMethodField(help_text="The model that writes summaries.")
    redaction = serializers.BooleanField(help_text="Redact what looks like a secret before a model sees it.")
    retention_days = serializers.IntegerField(
        allow_null=True, help_text="Conversations untouched for so long are erased; null: kept."
    )
    limits = serializers.SerializerMethodField(help_text="What it may use.")
    usage = serializers.SerializerMethodField(help_text="What is used of the limits, this calendar month, UTC.")
    created_at = serializers.DateTimeField(help_text="When it was created.")

    @extend_schema_field(SummarizerViewSerializer)
    def get_summarizer(self, tenant: Tenant) -> dict[str, Any]:
        stored = tenant.summarizer
        return {
            "model": stored.get("model"),
            "fallback_models": stored.get("fallback_models", []),
            "api_base": stored.get("api_base"),
            "api_key_set": tenant.summarizer_key is not None,
            "extra_headers": stored.get("extra_headers", {}),
        }

    @extend_schema_field(LimitsSerializer)
    def get_limits(self, tenant: Tenant) -> Any:
        return LimitsSerializer(limits_of(tenant.limits)).data

    @extend_schema_field(serializers.DictField())
    def get_usage(self, _tenant: Tenant) -> Any:
        return self.context["usage"]


class TenantChangeSerializer(StrictSerializer):
    """Settings to change; what is left out stays."""

    fixed = {
        **dict.fromkeys(("name", "limits", "status"), "The platform sets it (`/v1/admin/tenants`)."),
        "usage": "It is what was used of the limits.",
        **dict.fromkeys(("id", "created_at"), "The service sets it."),
    }
    policy = StorableJSONField(required=False, help_text="Merged; null unsets a field.")
    summarizer = SummarizerSerializer(required=False, help_text="Merged; null unsets a field.")
    redaction = serializers.BooleanField(
        required=False, help_text="Redact what looks like a secret before a model sees it."
    )
    retention_days = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=36_500,
        help_text="Erase conversations untouched for this many days; null: keep them.",
    )  # fmt: skip


def _future(value: datetime) -> None:
    if value <= timezone.now():
        raise serializers.ValidationError("Must be in the future.")


class KeyCreateSerializer(StrictSerializer):
    """A key to make."""

    name = serializers.CharField(
        max_length=NAME_LENGTH, required=False, default="", allow_blank=True, help_text="What it is for."
    )
    scopes = serializers.ListField(
        child=ChoiceField(Scope.choices), min_length=1, max_length=3,
        help_text="`write` includes `read`; `admin` includes both.",
    )  # fmt: skip
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, default=None, validators=[_future], help_text="Null: it does not expire."
    )


class KeyRotateSerializer(StrictSerializer):
    """How to rotate."""

    overlap_seconds = serializers.IntegerField(
        required=False, default=3600, min_value=0, max_value=MAX_OVERLAP, help_text="How long the old key still works."
    )


class KeySerializer(serializers.Serializer[Any]):
    """A key without its secret."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    name = serializers.CharField(help_text="What it is for.")
    prefix = serializers.CharField(help_text="The part after `ck_`, to recognise the key by.")
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices), help_text="What it may do.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Null: it does not expire.")
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")
    created_at = serializers.DateTimeField(help_text="When it was made.")


class IssuedKeySerializer(KeySerializer):
    """A key with its secret, shown this once."""

    key = serializers.CharField(help_text="The secret. It is not stored and cannot be shown again.")


class AuditEventSerializer(serializers.Serializer[Any]):
    """One event of the audit trail."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    action = serializers.CharField(help_text="What was done, such as `content.viewed` or `key.revoked`.")
    actor = serializers.CharField(help_text="Who: `key:<name>`, `staff:<name>`, `service:<task>`.")
    target = serializers.CharField(help_text="To what: `conversation:<id>`, `compaction:<id>`, `key:<id>`; or empty.")
    changed = serializers.ListField(
        child=serializers.CharField(), help_text="Names of the fields that were changed; never values."
    )
    request_id = serializers.CharField(help_text="Of the request, as the logs have it; or empty.")
    created_at = serializers.DateTimeField(help_text="When.")


class PlatformTenantCreateSerializer(StrictSerializer):
    """A tenant to make."""

    name = serializers.CharField(max_length=NAME_LENGTH, help_text="Unique.")
    limits = StorableJSONField(required=False, help_text="Overrides of the limits.")
    weight = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=1000, help_text="Share of the workers."
    )


class PlatformTenantChangeSerializer(StrictSerializer):
    """What the platform may change; what is left out stays."""

    fixed = {
        "name": "Make another tenant.",
        **dict.fromkeys(("id", "created_at"), "The service sets it."),
        **dict.fromkeys(("policy", "summarizer", "redaction", "retention_days"), "The tenant sets it (`/v1/tenant`)."),
    }
    limits = StorableJSONField(required=False, help_text="Overrides of the limits, merged; null unsets one.")
    status = ChoiceField(Tenant.Status.choices, required=False, help_text="`suspended` refuses its keys.")
    weight = serializers.IntegerField(required=False, min_value=1, max_value=1000, help_text="Share of the workers.")


class PlatformTenantSerializer(serializers.Serializer[Any]):
    """A tenant as the platform sees it."""

    id = serializers.UUIDField(help_text="Time-ordered.")
    name = serializers.CharField(help_text="Unique.")
    status = serializers.ChoiceField(Tenant.Status.choices, help_text="A suspended one is refused with 403.")
    weight = serializers.IntegerField(help_text="Share of the workers relative to other tenants.")
    limits = serializers.SerializerMethodField(help_text="What it may use, defaults included.")
    created_at = serializers.DateTimeField(help_text="When it was created.")

    @extend_schema_field(LimitsSerializer)
    def get_limits(self, tenant: Tenant) -> Any:
        return LimitsSerializer(limits_of(tenant.limits)).data


class TenantErasureSerializer(serializers.Serializer[Any]):
    """The receipt of a tenant's deletion."""

    id = serializers.UUIDField(help_text="The tenant that was deleted.")
    erased_at = serializers.DateTimeField(help_text="When.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Rows deleted, by table.")


class IssuedTenantSerializer(PlatformTenantSerializer):
    """A new tenant with its first key, which may do everything and is shown this once."""

    key = serializers.CharField(help_text="The secret. It is not stored and cannot be shown again.")
