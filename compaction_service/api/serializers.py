"""Bases of the request serializers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from django.core.exceptions import ValidationError as DjangoValidationError
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields it does not know (`unknown_field`) and fields that are read only (`read_only`).

    `fixed`: fields of the thing that cannot be changed by this request, with what to do instead.
    """

    fixed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def valid(cls, data: Any) -> dict[str, Any]:
        """The validated data; raises ValidationError. All requests share one instance, which keeps nothing of them:
        DRF takes longer to make the fields of an instance than an append to be checked by them."""
        if data is None:
            cls(data=data).is_valid(raise_exception=True)
        value: dict[str, Any] = _shared(cls).run_validation(data)
        return value

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        if isinstance(data, Mapping):
            for name in data:
                field = self.fields.get(name)
                if field is None and name in self.fixed:
                    errors[name] = [ErrorDetail(f"This field cannot be changed. {self.fixed[name]}", code="read_only")]
                elif field is None:
                    errors[name] = [ErrorDetail("There is no such field.", code="unknown_field")]
                elif field.read_only:
                    errors[name] = [ErrorDetail("This field is read only.", code="read_only")]
                elif wanted := _another_type(field, data[name]):
                    errors[name] = [ErrorDetail(f"Must be {wanted}.", code="invalid")]
        try:
            value = super().to_internal_value(data)
        except (ValidationError, DjangoValidationError) as exc:
            detail = serializers.as_serializer_error(exc)
            raise ValidationError({**errors, **detail}) from exc
        if errors:
            raise ValidationError(errors)
        return value


@cache
def _shared(serializer: type[StrictSerializer]) -> StrictSerializer:
    return serializer()


def _another_type(field: serializers.Field[Any, Any, Any, Any], value: Any) -> str | None:
    """What the value should have been, where it is of another type of JSON: DRF would take 0 for false and for "0"."""
    if value is None:
        return None  # the field says whether it may be
    if isinstance(field, serializers.BooleanField):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(field, serializers.CharField):
        return None if isinstance(value, str) else "a text"
    if isinstance(field, (serializers.IntegerField, serializers.FloatField)):
        return "a number" if isinstance(value, (bool, str)) else None
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        wanted = [found for one in value if (found := _another_type(field.child, one))]
        return f"a list, each item {wanted[0]}" if wanted else None
    return None


class ChoiceField(serializers.ChoiceField):
    """Says what may be chosen."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        super().__init__(choices, **kwargs)
        self.error_messages["invalid_choice"] = f"Must be one of {', '.join(map(str, self.choices))}."


class StorableJSONField(serializers.JSONField):
    """A JSON object for a `jsonb` column, which cannot hold NUL or lone surrogates (docs/design.md)."""

    default_error_messages = {
        "not_object": "Must be an object.",
        "unstorable": "Must not contain NUL characters or lone surrogates.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("not_object")
        if not _storable(data):
            self.fail("unstorable")
        return data


def _storable(value: Any) -> bool:
    """Whether every string in it, keys too, is text that PostgreSQL takes."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo.extend(one.keys())
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
        elif isinstance(one, str) and ("\0" in one or (not one.isascii() and not _encodable(one))):
            return False
    return True


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
