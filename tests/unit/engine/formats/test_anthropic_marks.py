"""The API takes four `cache_control` marks in a request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.formats.anthropic_marks import MOST, newest

MARK = {"type": "ephemeral"}


def turn(*marked: bool, role: str = "user") -> dict[str, Any]:
    blocks = [
        {"type": "text", "text": f"block {n}"} | ({"cache_control": MARK} if m else {}) for n, m in enumerate(marked)
    ]
    return {"role": role, "content": blocks}


def marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


def test_newest__moving_mark__the_newest_four_stay() -> None:
    turns = [turn(True, role="user" if n % 2 == 0 else "assistant") for n in range(9)]
    kept = newest(turns, ())
    assert [marks(one) for one in kept] == [0] * 5 + [1] * 4
    assert [one["content"][0]["text"] for one in kept] == ["block 0"] * 9
    assert all(new is old for new, old in zip(kept[5:], turns[5:], strict=True))


def test_newest__system_and_tools_marked__messages_have_what_is_left() -> None:
    system = [{"type": "text", "text": "You code.", "cache_control": MARK}]
    tools = [{"name": "a"}, {"name": "b", "cache_control": MARK}]
    assert [marks(one) for one in newest([turn(True)] * 5, (system, tools))] == [0, 0, 0, 1, 1]
    assert newest([turn(True)], ([*system, *tools] * 3,)) == [turn(False)]


def test_newest__mark_inside_a_result__counts_and_goes() -> None:
    inner = [{"type": "text", "text": "x", "cache_control": MARK}]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": inner}]}
    kept = newest([result, *[turn(True)] * 4], ())
    assert [marks(one) for one in kept] == [0, 1, 1, 1, 1]
    assert kept[0]["content"][0]["content"] == [{"type": "text", "text": "x"}]
    assert marks(result) == 1


@pytest.mark.parametrize("beside", [(), (None, None), ("You code.", None), ("You code.", [{"name": "a"}])])
def test_newest__four_or_fewer__all_as_they_came(beside: Any) -> None:
    turns = [turn(True, True), turn(False), {"role": "assistant", "content": "Yes."}, turn(True, False, True)]
    kept = newest(turns, beside)
    assert all(new is old for new, old in zip(kept, turns, strict=True))


@given(st.lists(st.lists(st.booleans(), max_size=6), max_size=12), st.integers(0, 6))
def test_newest__any_marks__no_more_than_the_api_takes(drawn: list[list[bool]], beside: int) -> None:
    turns = [turn(*some) for some in drawn]
    kept = newest(turns, ([{"name": "t", "cache_control": MARK}] * beside,))
    assert sum(map(marks, kept)) <= max(0, MOST - beside)
    assert newest(kept, ([{"name": "t", "cache_control": MARK}] * beside,)) == kept
