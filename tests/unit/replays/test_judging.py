"""The judge of replays finds what is wrong: a judge that sees nothing would let everything pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.replays.judging import coverage_problems, request_problems

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
LABEL = "<conversation_summary>\nEarlier things.\n</conversation_summary>"
STORED = [
    {"role": "user", "content": "First."},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Run it."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "found nothing"},
    {"role": "assistant", "content": "Nothing."},
]
USE = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "found nothing"}
BLOCKS = [
    *STORED[:3],
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, USE]},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": [{"type": "text", "text": "Nothing."}]},
]


def context(fmt: str, **changes: Any) -> dict[str, Any]:
    """Positions 1 and 2 covered; the first, a pinned request say, carried."""
    if fmt == "openai":
        shown = [{"role": "system", "content": "S"}, {"role": "user", "content": LABEL}, STORED[0], *STORED[2:]]
    else:
        merged = [{"type": "text", "text": text} for text in (LABEL, "First.", "Run it.")]
        shown = [{"role": "user", "content": merged}, *BLOCKS[3:]]
    given = {"covered": {"from": 1, "to": 2}, "carried": [1], "masked": [], "summaries": ["s"], "messages": shown}
    return copy.deepcopy({**given, **changes})


def judged(fmt: str, seen: dict[str, Any]) -> list[str]:
    stored = STORED if fmt == "openai" else BLOCKS
    return coverage_problems(fmt, seen, stored, "S") + request_problems(fmt, seen, stored, kept=True)


@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
def test_judge__context_as_it_must_be__finds_nothing(fmt: str) -> None:
    assert judged(fmt, context(fmt)) == []


def _without_request(messages: list[Any]) -> None:
    if isinstance(messages[0]["content"], list):
        messages[0]["content"].pop()
    else:
        del messages[3]


def _changed_result(messages: list[Any]) -> None:
    holder = messages[-2]["content"][0] if isinstance(messages[-2]["content"], list) else messages[-2]
    holder["content"] = "found something"


def _masked_result(messages: list[Any]) -> None:
    holder = messages[-2]["content"][0] if isinstance(messages[-2]["content"], list) else messages[-2]
    holder["content"] = "[Previous: used bash]"


BROKEN: list[tuple[Callable[[list[Any]], None], str]] = [
    (lambda messages: messages.pop(), "assistant"),
    (lambda messages: messages.append(messages[-1]), "assistant"),
    (lambda messages: messages.insert(1, {"role": "assistant", "content": "Never said."}), "assistant"),
    (lambda messages: messages.pop(-2), "the result of c1 is missing"),
    (_changed_result, "a result of c1 that nobody gave"),
    (_masked_result, "the result of c1 is missing"),
    (_without_request, "the last user request is missing"),
]


@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
@pytest.mark.parametrize(("broken", "said"), BROKEN)
def test_judge__context_with_a_fault__names_it(fmt: str, broken: Callable[[list[Any]], None], said: str) -> None:
    seen = context(fmt)
    broken(seen["messages"])
    assert any(problem.startswith(said) for problem in judged(fmt, seen)), judged(fmt, seen)


@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
def test_judge__masked_position__may_be_a_placeholder_and_only_that_one(fmt: str) -> None:
    seen = context(fmt, masked=[5])
    _masked_result(seen["messages"])
    assert judged(fmt, seen) == []
    _changed_result(seen["messages"])
    assert judged(fmt, seen) != []


@pytest.mark.parametrize(
    "changes",
    [
        {"covered": {"from": 1, "to": 3}},  # shown though covered
        {"covered": {"from": 1, "to": 1}},  # neither shown nor covered
        {"covered": None},
        {"carried": []},
        {"carried": [1, 3]},  # not covered
        {"summaries": []},
    ],
)
@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
def test_judge__coverage_that_is_not_what_is_shown__is_found(fmt: str, changes: dict[str, Any]) -> None:
    assert judged(fmt, context(fmt, **changes)) != []
