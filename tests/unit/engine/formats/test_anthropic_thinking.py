"""Which models refuse thinking whose prefix changed, and messages without their thinking."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_service.engine.formats import anthropic, openai
from compaction_service.engine.projection import Parts, render
from compaction_service.engine.types import Entry, Facts
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies_anthropic import REDACTED, THINKING, text


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-fable-5.1-20260901",
        "anthropic.claude-opus-5-5",
        "azure_ai/claude-opus-5-5-fast",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "claude-mythos-5-1",
        "claude-opus-6",
        "anthropic/claude-something-new",
    ],
)
def test_binds_thinking__newest_and_unknown_claude__is_true(model: str) -> None:
    assert anthropic.binds_thinking(model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-2.1",
        "anthropic.claude-v2",
        "claude-instant-1.2",
        "claude-3-7-sonnet-20250219",
        "claude-opus-4-5-20251101",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-haiku-4-5@20251001",
        "anthropic/claude-opus-4.6",
        "claude-fable-5",
        "claude-opus-5-20260301",
        "claude-mythos-preview",
        "kimi-k2-thinking",
    ],
)
def test_binds_thinking__older_claude_or_another_maker__is_false(model: str) -> None:
    assert not anthropic.binds_thinking(model)
    assert not openai.binds_thinking(model)


def test_without_thinking__interleaved__takes_all_of_it_and_nothing_else() -> None:
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
    message = {"role": "assistant", "content": [THINKING, text("x"), REDACTED, use]}
    assert anthropic.without_thinking(message) == {"role": "assistant", "content": [text("x"), use]}
    assert message["content"][0] is THINKING


def test_without_thinking__none_in_it__is_the_same_message() -> None:
    for message in ({"role": "assistant", "content": "x"}, {"role": "user", "content": [text("x")]}):
        assert anthropic.without_thinking(message) is message


def test_render__thinking_left_out__message_of_nothing_else_is_not_shown() -> None:
    bodies: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [THINKING]},
        {"role": "assistant", "content": [THINKING, text("x")]},
    ]
    entries = [
        Entry(i, Facts(body["role"]), thinking_tokens=5, body=body).without_thinking()
        for i, body in enumerate(bodies, 1)
    ]
    shown = render(anthropic, Parts(tail=tuple(entries))).messages
    assert shown == [bodies[0], {"role": "assistant", "content": [text("x")]}]
    assert anthropic_violations(shown) == []
