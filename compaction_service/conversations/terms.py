"""What governs one conversation now: its effective policy, its model's window, and the meter read against both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compaction_service.api.errors import ApiError
from compaction_service.conversations.models import Conversation
from compaction_service.engine import policy as policies
from compaction_service.engine.policy import Limits, Policy, PolicyError
from compaction_service.registry.selectors import model_get, model_known
from compaction_service.registry.specs import ModelSpec, UnknownModel, Window, WindowUnknown, unlisted, window_for
from compaction_service.tokens.families import family
from compaction_service.tokens.messages import Counter, counter_for

CALL = "call"  # the policy level of one request
PARTS = ("system", "tools", "summaries", "carried", "tail")


@dataclass(frozen=True)
class Terms:
    """The effective policy with where each field came from, the window, and the counter of a conversation's model."""

    policy: Policy
    sources: dict[str, str]
    spec: ModelSpec
    window: Window
    factor: float
    calibrated: bool
    model: str  # by the name it was asked for
    tokenizer: str  # of the conversation's raw counts; another than the model's until they were made anew

    @cached_property
    def limits(self) -> Limits:
        """Raises `PolicyError` for a reserve that leaves nothing of the window, `ApiError` where the call gave it."""
        try:
            return policies.limit(self.policy, self.window.tokens, self.spec.max_output)
        except PolicyError as error:
            if self.sources[error.field] == CALL:
                raise _call_error(error) from None
            raise

    @property
    def counter(self) -> Counter:
        """Counts raw tokens as the conversation's stored ones were: all of them are always of one tokenizer."""
        if self.foreign:
            return counter_for(self.tokenizer, family(self.tokenizer).factor)
        return self.spec.counter

    @property
    def foreign(self) -> bool:
        """The stored counts are of another tokenizer than the model's: what is shown is an estimate (semantics 3)."""
        return self.tokenizer != self.spec.tokenizer

    def raw(self, tokens: int) -> int:
        """The most raw tokens whose calibrated count is at most `tokens`."""
        return math.floor(tokens / self.factor)

    def shown(self, raw: int) -> int:
        """Raw tokens as the meter shows them."""
        return math.ceil(raw * self.factor)

    @property
    def method(self) -> str:
        if self.foreign:
            return "estimate"
        return "calibrated" if self.calibrated else self.spec.method


def terms_of(
    conversation: Conversation,
    tenant_policy: Mapping[str, Any],
    *,
    call: Mapping[str, Any] | None = None,
    model: str | None = None,
) -> Terms:
    """The terms of a conversation, optionally as another model or a call's own policy would have them.

    Raises `ApiError` 400 for a field of the call that cannot be, and where no window is known.
    """
    try:
        policies.check(call or {})
    except PolicyError as error:
        raise _call_error(error) from None
    policy, sources = policies.resolve(
        [("tenant", tenant_policy), ("conversation", conversation.policy), (CALL, call or {})]
    )
    own = model is None or model == conversation.model
    spec, window = model_for(model or conversation.model, conversation.context_window if own else None)
    if sources["reserve_output_tokens"] == "tenant" and (policy.reserve_output_tokens or 0) >= window.tokens:
        # Meant for the tenant's larger models; it must not keep this conversation from being appended to.
        policy, sources["reserve_output_tokens"] = replace(policy, reserve_output_tokens=None), policies.DEFAULT
    factor = conversation.factor if own and conversation.calibrated else spec.factor
    tokenizer = conversation.tokenizer or spec.tokenizer  # a new conversation has none yet
    calibrated = conversation.calibrated and own
    return Terms(policy, sources, spec, window, factor, calibrated, model or conversation.model, tokenizer)


def capped(terms: Terms, window: int | None) -> Terms:
    """The terms with a window of at most `window` tokens: a provider that refused a context said it takes no more.

    A reserve that leaves nothing of it gives way to the default.
    """
    if window is None or window >= terms.window.tokens:
        return terms
    policy = terms.policy
    if (policy.reserve_output_tokens or 0) >= window:
        policy = replace(policy, reserve_output_tokens=None)
    return replace(terms, policy=policy, window=replace(terms.window, tokens=window))


def model_for(name: str, context_window: int | None) -> tuple[ModelSpec, Window]:
    """What is known of a model, and the window that counts: the one given, else the registry's.

    Raises `ApiError` 400 (`attr: model`) naming the nearest names, unless the window is given.
    """
    try:
        spec = model_get(name) if context_window is None else model_known(name) or unlisted(name)
    except UnknownModel as unknown:
        raise model_unknown(unknown, " A model that is not listed needs its `context_window`.") from None
    try:
        return spec, window_for(context_window, spec)
    except WindowUnknown:
        raise ApiError(
            400,
            "window_unknown",
            "The registry does not know this model's window: give `context_window`.",
            attr="model",
        ) from None


def window_kept(name: str, given: int | None) -> int | None:
    """What is left of a window that was given, once the conversation's model is this one: None where the model itself
    has no more than that, or none was given."""
    spec = model_known(name) if given is not None else None
    largest = spec.context_window if spec is not None else None
    return given if given is None or largest is None or given < largest else None


def model_unknown(unknown: UnknownModel, else_do: str = "") -> ApiError:
    """400 for the field `model`, with the nearest names."""
    near = f" Did you mean {', '.join(unknown.nearest)}?" if unknown.nearest else ""
    detail = f"The registry does not know this model.{near}{else_do}"
    return ApiError(400, "model_unknown", detail, attr="model", extra={"nearest": list(unknown.nearest)})


def _call_error(error: PolicyError) -> ApiError:
    """A field of the request's own, not of a stored policy."""
    return ApiError(400, "invalid", error.detail, attr=error.field)


def breakdown(conversation: Conversation, terms: Terms) -> dict[str, int]:
    """Tokens of the context by part, from the running sums."""
    raw = (
        conversation.system_tokens,
        conversation.tools_tokens,
        conversation.summary_tokens,
        conversation.carried_tokens,
        conversation.tail_tokens,
    )
    return {name: terms.shown(value) for name, value in zip(PARTS, raw, strict=True)}


def meter(parts: Mapping[str, int], terms: Terms) -> dict[str, Any]:
    """The meter of api.md for a context with these parts."""
    limits = terms.limits
    tokens = sum(parts.values())
    return {
        "tokens": tokens,
        "limit": limits.limit,
        "window": limits.window,
        "utilization": round(tokens / limits.limit, 4) if limits.limit else 0.0,
        "method": terms.method,
        "window_source": terms.window.source,
        "breakdown": dict(parts),
    }


def trigger_tokens(conversation: Conversation, terms: Terms) -> int:
    """What the trigger compares with the limit: `token_counter` and the preset decide (semantics 2 and 3)."""
    policy = terms.policy
    if policy.token_counter == "chars4":  # noqa: S105 -- tokens of text
        chars = conversation.shown_chars + (0 if policy.messages_only else conversation.fixed_chars)
        return chars // 4
    parts = breakdown(conversation, terms)
    if policy.messages_only:
        return parts["summaries"] + parts["carried"] + parts["tail"]
    return sum(parts.values())
