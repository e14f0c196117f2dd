"""The checks of a context from outside."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_service.local.validity import asks, call_problems, context_problems, turn_problems

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Ho"}


def calling(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": one} for one in ids]}


def result(call: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": ""}


def context(**changes: Any) -> dict[str, Any]:
    meter = {"tokens": 10, "window": 20}
    return {"meter": meter, "fits": True, "degraded": False, "messages": [USER], **changes}


def test_call_problems__parallel_calls_answered_in_any_order__none() -> None:
    assert call_problems([USER, calling("a", "b"), result("b"), result("a"), ANSWER]) == []


def test_call_problems__a_result_without_its_call__is_named() -> None:
    assert call_problems([USER, result("a")]) == ["message 1: a result without its call (a)"]


def test_call_problems__a_message_before_the_result__is_named_and_so_is_the_late_result() -> None:
    problems = call_problems([calling("a"), USER, result("a")])
    assert problems == ["message 1: comes before the result of a", "message 2: a result without its call (a)"]


def test_call_problems__no_result__is_named() -> None:
    assert call_problems([calling("a")]) == ["at the end: no result of a"]


def test_context_problems__all_well__none() -> None:
    assert context_problems(context(), USER) == []


def test_context_problems__everything_wrong__each_is_named() -> None:
    bad = context(meter={"tokens": 30, "window": 20}, fits=False, degraded=True, messages=[ANSWER, calling("a")])
    assert len(context_problems(bad, USER)) == 4


def test_context_problems__policy_lets_the_request_go__none() -> None:
    assert context_problems(context(messages=[ANSWER]), None) == []


def block(kind: str, id_: str) -> dict[str, Any]:
    return {"type": kind, "tool_use_id" if kind == "tool_result" else "id": id_}


def turn(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


TEXT = {"type": "text", "text": "And now?"}
USES = turn("assistant", block("tool_use", "a"), block("tool_use", "b"))
RESULTS = turn("user", block("tool_result", "b"), block("tool_result", "a"), TEXT)


def test_turn_problems__calls_answered_first_in_the_next_turn__none() -> None:
    assert turn_problems([USER, USES, RESULTS, turn("assistant", TEXT)]) == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([ANSWER], "message 0: follows another of assistant"),
        ([USER, USER], "message 1: follows another of user"),
        ([USER, turn("assistant")], "message 1: is empty"),
        ([USER, ANSWER, turn("user", block("tool_result", "a"))], "message 2: a result without its call (a)"),
        ([USER, USES, turn("user", TEXT, *RESULTS["content"])], "message 2: results after other content"),
        ([USER, USES, turn("user", *RESULTS["content"][:1])], "message 2: comes before the result of a"),
        ([USER, USES], "at the end: no result of a"),
    ],
)
def test_turn_problems__a_broken_rule__is_named(messages: list[dict[str, Any]], problem: str) -> None:
    assert problem in turn_problems(messages)


def test_context_problems__request_merged_with_another_turn__is_there() -> None:
    merged = turn("user", {"type": "text", "text": "Before"}, TEXT)
    blank = {"type": "text", "text": " "}
    assert context_problems(context(messages=[merged]), turn("user", blank, TEXT), "anthropic") == []
    assert context_problems(context(messages=[merged]), USER, "anthropic") == ["the last user request is missing"]


def test_asks__results_alone__are_no_request() -> None:
    assert not asks(turn("user", *RESULTS["content"][:2]))
    assert asks(RESULTS)
    assert asks(USER)
    assert not asks(ANSWER)
