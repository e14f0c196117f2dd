"""JSON out: fast for the usual, right for everything (lone surrogates, integers beyond 64 bits)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson
from django.utils.functional import Promise
from rest_framework.renderers import BaseRenderer

_OPTIONS = orjson.OPT_UTC_Z


class RawJSON:
    """JSON text that was stored as such and goes out as it is, without being read again."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8. Raises TypeError for what is not JSON."""
    try:
        return orjson.dumps(value, _default, _OPTIONS)
    except TypeError:
        return _encode(value).encode()


class JSONRenderer(BaseRenderer):
    """What every view of ours answers with."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:  # noqa: ARG002
        return b"" if data is None else dumps(data)


def _default(value: Any) -> Any:
    if type(value) is RawJSON:
        return orjson.Fragment(value.text)
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, Promise):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON.")


def _encode(value: Any) -> str:
    """What orjson refuses, piece by piece; our answers are shallow, and stored texts are not walked."""
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(key))}:{_encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_encode, value)) + "]"
    return orjson.dumps(value, _default, _OPTIONS).decode()
