"""Learning a model's factor from the usage its provider reported (semantics 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms

# A report below this says more about overhead than about the tokenizer.
SMALLEST_SAMPLE = 200
# One report moves the factor half of the way; a provider that counts three times differently is believed, not more.
WEIGHT, LOWEST, HIGHEST = 0.5, 0.33, 3.0


def input_tokens(usage: Mapping[str, Any]) -> int | None:
    """All tokens of the prompt, from either provider's own usage object; None where it does not say.

    OpenAI's `prompt_tokens` includes cached ones, Anthropic's `input_tokens` leaves cache reads and writes apart.
    """
    prompt = usage.get("prompt_tokens")
    if isinstance(prompt, int):
        return prompt
    if not isinstance(usage.get("input_tokens"), int):
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(value for name in names if isinstance(value := usage.get(name), int))


def learn(
    conversation: Conversation, terms: Terms, usage: Mapping[str, Any] | None, context_version: str | None
) -> Terms:
    """Move the conversation's factor towards what was reported for the context it was given.

    Only a report for the context as it is now can be compared with our count. Exactly counted models are left alone.
    """
    if usage is None or context_version != str(conversation.version) or terms.spec.method == "exact":
        return terms
    reported = input_tokens(usage)
    counted = (
        conversation.system_tokens
        + conversation.tools_tokens
        + conversation.summary_tokens
        + conversation.carried_tokens
        + conversation.tail_tokens
    )
    if reported is None or counted < SMALLEST_SAMPLE or reported < SMALLEST_SAMPLE:
        return terms
    seen = max(LOWEST, min(reported, int(HIGHEST * counted)) / counted)  # JSON has integers that no float holds
    conversation.factor += WEIGHT * (seen - conversation.factor)
    conversation.calibrated = True
    return replace(terms, factor=conversation.factor, calibrated=True)
