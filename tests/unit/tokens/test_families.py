"""Which family a model's name belongs to."""

from __future__ import annotations

import pytest

from compaction_service.tokens.families import TOKENIZERS, family, tokenizer_for
from compaction_service.tokens.messages import counter_for


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        ("gpt-4o", "o200k_base"),
        ("azure/gpt-4o-2024-08-06", "o200k_base"),
        ("openrouter/openai/gpt-4o-mini", "o200k_base/gpt-4o-mini"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("gpt-4.1", "o200k_base"),
        ("gpt-4.1-mini", "o200k_base/gpt-4.1-mini"),
        ("o3-mini", "o200k_base/o1"),
        ("o4-mini", "o200k_base/o4-mini"),
        ("gpt-5", "o200k_base/gpt-5"),
        ("gpt-5.4", "o200k_base/gpt-5.2"),
        ("gpt-oss-120b", "o200k_base/gpt-oss"),
        ("claude-3-5-sonnet-20241022", "cl100k_base/claude-3"),
        ("claude-sonnet-4-20250514", "cl100k_base/claude-3"),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "cl100k_base/claude-3"),
        ("anthropic/claude-sonnet-4.5", "cl100k_base/claude-4.5"),
        ("Claude-Haiku-4-5", "cl100k_base/claude-4.5"),
        ("claude-opus-4-7", "cl100k_base/claude-4.7"),
        ("claude-sonnet-5", "cl100k_base/claude-4.7"),
        ("gemini/gemini-2.5-pro", "o200k_base/gemini"),
        ("groq/llama-3.3-70b-versatile", "cl100k_base/llama"),
        ("acme-1", "o200k_base/other"),
    ],
)
def test_tokenizer_for__known_names__is_the_familys(model: str, tokenizer: str) -> None:
    assert tokenizer_for(model) == tokenizer


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_counter_for__each_tokenizer__is_exact_only_for_openais_own(tokenizer: str) -> None:
    counter = counter_for(tokenizer, family(tokenizer).factor)
    others = ("claude", "gemini", "oss", "deepseek", "qwen", "llama", "mistral", "other")
    assert counter.method == ("estimate" if any(name in tokenizer for name in others) else "exact")
    assert counter_for(tokenizer, 1.25).method == "estimate"


def test_counter_for__unknown_tokenizer__says_so() -> None:
    with pytest.raises(ValueError, match="unknown tokenizer 'acme'"):
        counter_for("acme", 1.0)
