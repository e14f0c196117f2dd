"""Types and ranges of the policy's fields (semantics 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

MAX_INT = 2**53 - 1  # the largest integer every JSON reader keeps exactly

Rule = Callable[[str, Any], None]


class PolicyError(Exception):
    """A policy that cannot be. `field` names the field, `detail` says what it may be; `also`: other fields of it."""

    def __init__(self, field: str, detail: str, code: str = "invalid") -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail
        self.code = code
        self.also: tuple[PolicyError, ...] = ()


def _bool(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise PolicyError(field, "Must be true or false.")


def _choice(*allowed: str) -> Rule:
    def rule(field: str, value: Any) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise PolicyError(field, "Must be one of: " + ", ".join(allowed) + ".")

    return rule


def _int(low: int, high: int = MAX_INT) -> Rule:
    def rule(field: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise PolicyError(field, f"Must be an integer from {low} to {high}.")

    return rule


def _number(fits: Callable[[Any], bool], range_text: str) -> Rule:
    def rule(field: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not fits(value):
            raise PolicyError(field, f"Must be a number {range_text}.")

    return rule


def _usable(text: Any) -> bool:
    """Text that can be sent to a model and searched: no NUL, no lone surrogates."""
    return isinstance(text, str) and "\0" not in text and text == text.encode(errors="ignore").decode()


def _text(field: str, value: Any) -> None:
    if not _usable(value):
        raise PolicyError(field, "Must be text without NUL characters and lone surrogates.")


def _name(field: str, value: Any) -> None:
    if not _usable(value) or not value.strip():
        raise PolicyError(field, "Must be a name: text that is not blank.")


def _names(field: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)) or not all(_usable(name) and name.strip() for name in value):
        raise PolicyError(field, "Must be a list of names, none of them blank.")


def _headings(field: str, value: Any) -> None:
    _names(field, value)
    if not value:
        raise PolicyError(field, "Must have at least one heading.")
    # Each becomes a line `## <heading>` by which the summary's sections are found again.
    if any(heading.splitlines() != [heading] or heading.lstrip().startswith("#") for heading in value):
        raise PolicyError(field, "A heading must be a single line and not begin with #.")
    if len({heading.strip().casefold() for heading in value}) < len(value):
        raise PolicyError(field, "The headings must differ.")


RULES: dict[str, Rule] = {
    "enabled": _bool,
    "preset": _choice("navigator", "three_layer", "infinite_context"),
    "strategy": _choice("sliding", "hierarchical", "hybrid"),
    "threshold": _number(lambda x: 0 < x <= 1, "above 0 and at most 1"),
    "max_tokens": _int(1),
    "target": _number(lambda x: 0 <= x < 1, "of at least 0 and below 1"),
    "preserve_recent_turns": _int(0),
    "keep_last_user_request": _bool,
    "keep_first_user_request": _bool,
    "summary_max_tokens": _int(64),
    "summary_chain_max_tokens": _int(64),
    "target_compression_ratio": _number(lambda x: 1 < x <= MAX_INT and math.isfinite(x), "above 1"),
    "summary_sections": _headings,
    "instructions": _text,
    "language": _text,
    "summarizer_model": _name,
    "fallback_models": _names,
    "extractive_fallback": _bool,
    "mask_tool_results": _bool,
    "keep_tool_results": _int(0),
    "preserve_tools": _names,
    "mask_min_chars": _int(0),
    "mask_min_reclaim_tokens": _int(0),
    "token_counter": _choice("auto", "chars4"),
    "reserve_output_tokens": _int(0),
    "transparency": _choice("full", "summary", "silent"),
    "log_retention": _int(0),
    "resummarize_max_passes": _int(1, 10),
}
FRACTIONS = frozenset({"threshold", "target", "target_compression_ratio"})  # an integer given for one becomes a float
