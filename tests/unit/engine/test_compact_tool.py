"""The compact tool as a model calls it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine import compact_tool, formats

OPENAI, ANTHROPIC = formats.get("openai"), formats.get("anthropic")


def calling(*arguments: str, name: str = "compact") -> dict[str, Any]:
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": one}}
        for number, one in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.mark.parametrize("name", formats.NAMES)
def test_held__the_tools_of_a_format__are_looked_through_by_name(name: str) -> None:
    fmt, tool = formats.get(name), compact_tool.definition(name)
    other = json.loads(json.dumps(tool).replace('"compact"', '"compact_files"'))

    assert compact_tool.held(fmt, [other, tool])
    assert not compact_tool.held(fmt, [other])
    assert not compact_tool.held(fmt, None)


@pytest.mark.parametrize(
    ("arguments", "focus"),
    [
        ('{"focus": "prices"}', "prices"),
        ('{"focus": "  prices\\n"}', "prices"),
        ("{}", ""),
        ("", ""),
        ("{", ""),
        ("null", ""),
        ('["prices"]', ""),
        ('"prices"', ""),
        ('{"focus": 7}', ""),
        ('{"focus": null}', ""),
        ('{"focus": NaN}', ""),
        ('{"focus": "a\\u0000b"}', "ab"),
        ('{"focus": "a\\ud800b"}', "a?b"),
        ("[" * 100_000, ""),
        ('{"focus": "' + "x" * 1_000_000 + '"}', "x" * compact_tool.LONGEST_FOCUS),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_focus_of__whatever_a_model_writes__is_a_text_that_can_be_stored(arguments: str, focus: str) -> None:
    assert compact_tool.focus_of(OPENAI, calling(arguments)) == focus


def test_focus_of__several_calls__the_last_that_says_something_counts() -> None:
    assert compact_tool.focus_of(OPENAI, calling('{"focus": "a"}', '{"focus": "b"}', "{}")) == "b"


def test_focus_of__another_tools_focus__is_none() -> None:
    assert compact_tool.focus_of(OPENAI, calling('{"focus": "lens"}', name="camera")) == ""


def test_focus_of__a_legacy_function_call__is_read_too() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "compact", "arguments": '{"focus": "prices"}'},
    }

    assert compact_tool.focus_of(OPENAI, message) == "prices"


def test_focus_of__anthropic__input_is_an_object_already() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "compact", "input": {"focus": "prices"}}

    assert compact_tool.focus_of(ANTHROPIC, {"role": "assistant", "content": [block]}) == "prices"


@given(st.text())
def test_focus_of__any_arguments__never_raises_and_can_be_stored(arguments: str) -> None:
    for one in (arguments, json.dumps({"focus": arguments})):
        focus = compact_tool.focus_of(OPENAI, calling(one))
        focus.encode()
        assert "\0" not in focus
