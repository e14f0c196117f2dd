"""JSON text that carries anything a client may send: NUL, lone surrogates, integers of any size (docs/design.md)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import orjson

from compaction_service.engine.types import JSON

MAX_DEPTH = 200  # `[]` has depth 1; far below what any JSON reader of a client or provider takes

_LONG_NUMBER = re.compile(r"\d{19}")  # orjson would round integers beyond 64 bits to floats
_ESCAPED = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_UNESCAPED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: JSON) -> str:
    """Compact JSON text without a raw NUL or surrogate in it. ValueError for NaN and infinities."""
    try:
        raw = orjson.dumps(value)
    except TypeError:  # lone surrogates, integers beyond 64 bits, deep nesting
        return _ESCAPED.encode(value)
    # orjson writes NaN and infinities as null, so only a text with a null in it can hide one.
    if b"null" in raw and not _finite(value):
        raise ValueError("NaN and infinities are not JSON.")
    return raw.decode()


def loads(text: str | bytes) -> JSON:
    """The value of a JSON text. ValueError: not JSON, a number that is not finite, nesting deeper than MAX_DEPTH."""
    if isinstance(text, bytes):
        text = text.decode()  # UTF-8 only; json.loads would guess
    value = _parse(text)
    # Brackets inside strings count here as well, so this only says when the real depth need not be looked at.
    if text.count("[") + text.count("{") > MAX_DEPTH and _deep(value):
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels.")
    return value


def chars(value: JSON) -> int:
    """Length in characters of the compact JSON with nothing escaped that need not be (semantics 3)."""
    return len(_UNESCAPED.encode(value))


def _parse(text: str) -> JSON:
    if not _LONG_NUMBER.search(text):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:  # lone surrogates are legal JSON escapes; the rest fails again below
            pass
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except RecursionError:
        raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON.")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("A number is too large for a double.")
    return number


def _children(containers: Iterable[JSON]) -> list[JSON]:
    return [child for one in containers for child in (one.values() if isinstance(one, dict) else one)]


def _levels(value: JSON) -> Iterable[list[JSON]]:
    """The values at depth 0, 1, 2, ... without recursion."""
    level = [value]
    while level:
        yield level
        level = _children(v for v in level if isinstance(v, (dict, list, tuple)))


def _deep(value: JSON) -> bool:
    # An empty container at depth d makes no level d + 1, so containers are looked for, not levels counted.
    return any(
        depth >= MAX_DEPTH and any(isinstance(v, (dict, list)) for v in level)
        for depth, level in enumerate(_levels(value))
    )


def _finite(value: JSON) -> bool:
    return all(not isinstance(v, float) or math.isfinite(v) for level in _levels(value) for v in level)
