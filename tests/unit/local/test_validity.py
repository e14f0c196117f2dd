"""The checks of a context from outside."""

from __future__ import annotations

from typing import Any

from compaction_service.local.validity import call_problems, context_problems

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
