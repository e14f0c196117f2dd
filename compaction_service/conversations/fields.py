"""Fields for what providers made, and for text that columns can hold."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MAX_BATCH = 1000  # messages in one request

OBJECT = {"type": "object", "additionalProperties": True}


@extend_schema_field(OBJECT)
class ProviderObject(serializers.Field[Any, Any, Any, Any]):
    """A provider's own object, kept as it came: the engine judges it, not the serializer."""

    default_error_messages = {"not_object": "Must be an object in the provider's format."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_object")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"anyOf": [{"type": "string"}, {"type": "array", "items": OBJECT}, OBJECT, {"type": "null"}]})
class SystemField(serializers.Field[Any, Any, Any, Any]):
    """A system prompt: text, content parts, or a whole system or developer message."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"anyOf": [{"type": "array", "items": OBJECT}, {"type": "null"}]})
class ToolsField(SystemField):
    """Tool definitions in the provider's format."""


class StorableCharField(serializers.CharField):
    """Text for a column that is searched or shown: no NUL, no lone surrogates."""

    default_error_messages = {"unstorable": "Must not contain NUL characters or lone surrogates."}

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("unstorable")
        return text


class ExternalIdField(StorableCharField):
    """A client's own id, kept to the letter: blanks around it are part of it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=255, required=False, allow_null=True, trim_whitespace=False, **kwargs)


# In a path `%2F` is a slash like any other to Django and to many proxies; everything else arrives as it was encoded.
no_slash = RegexValidator(
    r"^[^/]*\Z", "Must not contain a slash: the conversation could not be addressed as `ext:<external_id>`.", "invalid"
)
