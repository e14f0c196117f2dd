"""Counting what is not stored: `POST /v1/count-tokens`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compaction_service.conversations.terms import model_unknown
from compaction_service.engine import formats
from compaction_service.engine.types import JSON, MessageError
from compaction_service.registry.selectors import model_get
from compaction_service.registry.specs import UnknownModel


def tokens_count(
    *,
    model: str,
    format: str,  # noqa: A002 -- the request's own word
    messages: Sequence[JSON],
    system: JSON = None,
    tools: JSON = None,
) -> dict[str, Any]:
    """Tokens of a context as the meter would show them before any calibration (semantics 3).

    Each message must be one of the format, but they need not be a whole conversation: results may lack their calls.
    Raises `ApiError` 400 for an unknown model, and `MessageError`.
    """
    try:
        spec = model_get(model)
    except UnknownModel as unknown:
        raise model_unknown(unknown) from None
    fmt, counter = formats.get(format), spec.counter
    fmt.check_system(system, "system")
    if tools is not None:
        fmt.check_tools(tools, "tools")
    for number, message in enumerate(messages):
        fmt.read(message, f"messages.{number}")
    rest = list(messages)
    if rest and fmt.leading_system(rest[0]) is not None:
        if system is not None:
            raise MessageError("system_given_twice", "Leave out `system` or the leading system message.", "system")
        system = rest.pop(0)
    raw = {
        "system": counter.system(fmt.name, system),
        "tools": counter.tools(fmt.name, tools),
        "messages": sum(counter.message(fmt.name, message) for message in rest),
    }
    parts = {name: math.ceil(tokens * counter.factor) for name, tokens in raw.items()}
    return {"tokens": sum(parts.values()), "method": counter.method, "model": spec.name, "breakdown": parts}
