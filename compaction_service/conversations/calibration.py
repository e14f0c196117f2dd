"""Learning a model's factor from the usage its provider reported (semantics 3).

A conversation has a factor of its own. What a tenant's conversations report of a model is also kept per model: a new
conversation begins with that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compaction_service.conversations.models import Conversation, ModelCalibration
from compaction_service.conversations.terms import Terms
from compaction_service.registry.specs import ModelSpec
from tenants.scope import required_tenant

# A report below this says more about overhead than about the tokenizer.
SMALLEST_SAMPLE = 200
# One report moves the factor half of the way; a provider that counts three times differently is believed, not more.
WEIGHT, LOWEST, HIGHEST = 0.5, 0.33, 3.0
SHARED_WEIGHT = 0.25  # of one report in what new conversations begin with: contents differ
SETTLED = 0.01  # a report this close to the factor it led to tells new conversations nothing


def input_tokens(usage: Mapping[str, Any]) -> int | None:
    """All tokens of the prompt, from either provider's own usage object; None where it does not say.

    OpenAI's `prompt_tokens` includes cached ones (so does the `input_tokens` of its newer API), Anthropic's
    `input_tokens` leaves cache reads and writes apart.
    """
    prompt = _count(usage.get("prompt_tokens"))
    if prompt is not None:
        return prompt
    fresh = _count(usage.get("input_tokens"))
    if fresh is None:
        return None
    apart = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return fresh + sum(_count(usage.get(name)) or 0 for name in apart)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def observed(
    conversation: Conversation, terms: Terms, usage: Mapping[str, Any] | None, context_version: str | None
) -> float | None:
    """The factor that a report speaks for; None for one that cannot be compared with our count.

    It must be about the context as it is now, as stored, counted by the model's own tokenizer, and long enough. Exactly
    counted models are left alone, unless a refusal has raised their factor: reports bring it down again, to 1 at least.
    """
    if usage is None or context_version != str(conversation.version) or terms.foreign:
        return None
    exact = terms.spec.method == "exact"
    reported, counted = input_tokens(usage), raw_tokens(conversation)
    if reported is None or min(reported, counted) < SMALLEST_SAMPLE or (exact and not conversation.calibrated):
        return None
    lowest = terms.spec.factor if exact else LOWEST
    return max(lowest, min(reported, int(HIGHEST * counted)) / counted)  # JSON has integers that no float holds


def raw_tokens(conversation: Conversation) -> int:
    """Raw tokens of the whole context."""
    return (
        conversation.system_tokens
        + conversation.tools_tokens
        + conversation.summary_tokens
        + conversation.carried_tokens
        + conversation.tail_tokens
    )


def learn(conversation: Conversation, terms: Terms, seen: float) -> Terms:
    """Move the conversation's factor towards what was observed."""
    conversation.factor = terms.factor + WEIGHT * (seen - terms.factor)
    conversation.calibrated = True
    return replace(terms, factor=conversation.factor, calibrated=True)


def start(spec: ModelSpec) -> tuple[float, bool]:
    """The factor that a conversation with this model begins with, and whether the tenant's reports made it."""
    if spec.method == "exact":
        return spec.factor, False
    known = ModelCalibration.objects.filter(model=spec.name, tokenizer=spec.tokenizer).first()
    return (spec.factor, False) if known is None else (known.factor, True)


def share(terms: Terms, seen: float) -> None:
    """Move what the tenant's new conversations begin with towards what one has just learned from.

    One row for all conversations of the model: so it is written only where there is something to learn, and a report
    that finds it locked is dropped. No append waits for another.
    """
    spec = terms.spec
    if spec.method == "exact" or abs(seen - terms.factor) <= SETTLED * seen:
        return
    known = ModelCalibration.objects.select_for_update(skip_locked=True).filter(model=spec.name).first()
    if known is None:
        first = ModelCalibration(
            tenant_id=required_tenant(), model=spec.name, tokenizer=spec.tokenizer, factor=terms.factor
        )
        ModelCalibration.objects.bulk_create([first], ignore_conflicts=True)
        return
    if known.tokenizer == spec.tokenizer:
        known.factor += SHARED_WEIGHT * (seen - known.factor)
    else:  # the registry counts the model otherwise now
        known.tokenizer, known.factor = spec.tokenizer, terms.factor
    known.save(update_fields=["tokenizer", "factor", "updated_at"])
