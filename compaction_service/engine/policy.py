"""The policy of a conversation: its fields, presets and levels, and the numbers that follow from it (semantics 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from compaction_service.engine import model_names, policy_fields
from compaction_service.engine.policy_fields import PolicyError

__all__ = ["PRESETS", "Limits", "Policy", "PolicyError", "check", "crossed", "limit", "merge", "resolve"]

DEFAULT = "default"  # the source of a field that no level sets

PRESETS: dict[str, dict[str, Any]] = {
    "navigator": {
        "strategy": "sliding",
        "threshold": 0.8,
        "target": 0.0,
        "preserve_recent_turns": 1,
        "keep_last_user_request": True,
        "summary_max_tokens": 4096,
        "summary_sections": ["Overall Goal", "Next Steps", "Active Files"],
        "mask_tool_results": False,
    },
    "three_layer": {
        "strategy": "sliding",
        "max_tokens": 50_000,
        "target": 0.0,
        "preserve_recent_turns": 0,
        "keep_last_user_request": False,
        "mask_tool_results": True,
        "keep_tool_results": 3,
        "preserve_tools": ["read_file"],
        "mask_min_reclaim_tokens": 0,
        "token_counter": "chars4",
    },
    "infinite_context": {
        "strategy": "sliding",
        "threshold": 0.75,
        "target": 0.0,
        "preserve_recent_turns": 20,
        "keep_last_user_request": False,
        "summary_chain_max_tokens": 2000,
        "target_compression_ratio": 8.0,
        "extractive_fallback": True,
        "mask_tool_results": False,
        "transparency": "summary",
        "log_retention": 100,
    },
}


@dataclass(frozen=True, slots=True)
class Policy:
    """An effective policy. Fields, defaults and ranges: the table of semantics 2."""

    enabled: bool = False
    preset: str | None = None
    strategy: str = "sliding"
    threshold: float = 0.8  # of the window
    max_tokens: int | None = None  # set, it replaces threshold
    target: float = 0.5  # of the limit; 0: kept exchanges are never given up
    preserve_recent_turns: int = 1
    keep_last_user_request: bool = True
    keep_first_user_request: bool = False
    summary_max_tokens: int = 4096
    summary_chain_max_tokens: int = 8192
    target_compression_ratio: float = 8.0
    summary_sections: tuple[str, ...] = ("Overall Goal", "Next Steps", "Active Files")
    instructions: str | None = None
    language: str | None = None  # None: the conversation's own
    summarizer_model: str | None = None  # None: the tenant's
    fallback_models: tuple[str, ...] | None = None  # None: the tenant's
    extractive_fallback: bool = True
    mask_tool_results: bool = True
    keep_tool_results: int = 3
    preserve_tools: tuple[str, ...] = ("read_file",)
    mask_min_chars: int = 100
    mask_min_reclaim_tokens: int = 2000
    token_counter: str = "auto"  # noqa: S105
    reserve_output_tokens: int | None = None  # None: min(the model's max output, 4096, window / 4)
    transparency: str = "full"
    log_retention: int = 100  # entries per conversation
    resummarize_max_passes: int = 4

    @property
    def exceed(self) -> bool:
        """The trigger waits until tokens exceed the limit; otherwise reaching it is enough."""
        return self.preset == "navigator" or self.max_tokens is not None

    @property
    def messages_only(self) -> bool:
        """The trigger counts messages without system and tools."""
        return self.preset == "three_layer"

    @property
    def summary_prefix(self) -> str:
        """What the message that shows a summary begins with."""
        return "[compressed] " if self.preset == "three_layer" else ""

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON has them; `from_dict` reads it back."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Policy:
        """What `resolve` makes of these fields alone. PolicyError as `resolve`."""
        return resolve([("", values)])[0]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a policy means for one model, in tokens (semantics 1)."""

    window: int
    reserve: int  # kept free for the answer
    trigger_value: int
    limit: int  # the smaller of the trigger value and window - reserve
    bound: int  # of one summary


def check(level: Mapping[str, Any]) -> None:
    """PolicyError for the fields that are unknown, of the wrong type, out of range or name models never called.

    None is always allowed. For what is about to be set: a level that was stored with such a model still resolves, and
    the call is refused.
    """
    _check_forms(level)
    named = {"summarizer_model": level.get("summarizer_model")}
    named |= {f"fallback_models.{i}": model for i, model in enumerate(level.get("fallback_models") or ())}
    _raise_all(
        PolicyError(field, problem)
        for field, model in named.items()
        if model is not None and (problem := model_names.problem(model))
    )


def _check_forms(level: Mapping[str, Any]) -> None:
    _raise_all(error for name, value in level.items() if (error := _error(name, value)))


def _raise_all(found: Iterable[PolicyError]) -> None:
    """The first one, which knows of the others."""
    errors = tuple(found)
    if errors:
        errors[0].also = errors[1:]
        raise errors[0]


def _error(name: str, value: Any) -> PolicyError | None:
    rule = policy_fields.RULES.get(name)
    if rule is None:
        known = ", ".join(policy_fields.RULES)
        return PolicyError(name, f"There is no such policy field. Known: {known}.", "unknown_field")
    try:
        if value is not None:
            rule(name, value)
    except PolicyError as error:
        return error
    return None


def resolve(levels: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Policy, dict[str, str]]:
    """The effective policy, and for each field the level that set it (or "default").

    `levels` go from general to specific; the most specific wins, None sets nothing, and a level's preset expands
    before its own fields. Two consequences: a more specific preset replaces a more general one as a whole, and a
    `threshold` that is set after `max_tokens` puts it out of force (the two are one choice).
    PolicyError for a field that is unknown, of the wrong type or out of range.
    """
    preset_level = max((i for i, (_, level) in enumerate(levels) if level.get("preset") is not None), default=-1)
    values: dict[str, Any] = {}
    sources = dict.fromkeys((field.name for field in fields(Policy)), DEFAULT)
    for i, (name, level) in enumerate(levels):
        _check_forms(level)
        expanded = PRESETS[level["preset"]] if i == preset_level else {}
        for layer in (expanded, level):
            given = {field: value for field, value in layer.items() if value is not None}
            if "threshold" in given and "max_tokens" not in given and values.pop("max_tokens", None) is not None:
                sources["max_tokens"] = name
            values.update(given)
            sources.update(dict.fromkeys(given, name))
    return Policy(**{field: _as_stored(field, value) for field, value in values.items()}), sources


def merge(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """One level after a PATCH: given fields replace, None unsets (semantics 2)."""
    return {name: value for name, value in {**old, **patch}.items() if value is not None}


def limit(policy: Policy, window: int, max_output: int | None) -> Limits:
    """The numbers for a model of this input window and maximum output (None: not known).

    PolicyError naming `reserve_output_tokens` when the reserve leaves nothing of the window.
    """
    reserve = policy.reserve_output_tokens
    if reserve is None:
        reserve = min(4096 if max_output is None else max_output, 4096, window // 4)
    if reserve >= window:
        raise PolicyError("reserve_output_tokens", f"Must be less than the model's window of {window} tokens.")
    trigger_value = max(1, int(policy.threshold * window)) if policy.max_tokens is None else policy.max_tokens
    smaller = min(trigger_value, window - reserve)
    bound = max(64, min(policy.summary_max_tokens, policy.summary_chain_max_tokens, smaller // 4))
    return Limits(window=window, reserve=reserve, trigger_value=trigger_value, limit=smaller, bound=bound)


def crossed(policy: Policy, limits: Limits, tokens: int) -> bool:
    """Whether these context tokens trigger: the limit is exceeded, or for most policies already reached."""
    return tokens > limits.limit if policy.exceed else tokens >= limits.limit


def _as_stored(field: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(value)
    return float(value) if field in policy_fields.FRACTIONS else value
