"""Ids of calls as Anthropic's API takes them: of known characters, and each of one call in a request."""

from __future__ import annotations

from typing import Any

from compaction_service.engine.formats import anthropic
from compaction_service.engine.formats.converting import convert
from compaction_service.engine.projection import Parts, Rendered, render
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies_anthropic import stored

Message = dict[str, Any]


def call(*ids: str) -> Message:
    uses = [{"type": "tool_use", "id": id_, "name": "bash", "input": {}} for id_ in ids]
    return {"role": "assistant", "content": uses}


def results(*ids: str) -> Message:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "ok"} for id_ in ids]}


HI: Message = {"role": "user", "content": "hi"}


def ids(*messages: Message) -> list[list[str]]:
    """The ids shown, turn by turn; the context is valid."""
    shown = render(anthropic, Parts(tail=stored(messages))).messages
    assert anthropic_violations(shown) == []
    return [
        [block.get("id") or block["tool_use_id"] for block in turn["content"]]
        for turn in shown
        if isinstance(turn["content"], list)
    ]


def test_render__id_used_again__each_call_has_its_own_and_its_result_too() -> None:
    assert ids(HI, call("a", "b"), results("b", "a"), call("a"), results("a"), call("a"), results("a")) == [
        ["a", "b"],
        ["b", "a"],
        ["a_2"],
        ["a_2"],
        ["a_3"],
        ["a_3"],
    ]


def test_render__made_up_id_used_by_the_agent__is_not_given_twice() -> None:
    assert ids(HI, call("a", "a_2"), results("a", "a_2"), call("a"), results("a")) == [
        ["a", "a_2"],
        ["a", "a_2"],
        ["a_3"],
        ["a_3"],
    ]


def test_render__id_of_other_characters__is_shown_with_known_ones() -> None:
    assert ids(HI, call("call|1.x", "call_1_x"), results("call_1_x", "call|1.x")) == [
        ["call_1_x", "call_1_x_2"],
        ["call_1_x_2", "call_1_x"],
    ]


def test_render__abandoned_and_open_calls_with_one_id__synthetic_result_is_of_the_right_one() -> None:
    assert ids(HI, call("a"), call("a"), results("a"), call("a")) == [["a"], ["a"], ["a_2"], ["a_2"], ["a_3"]]


def test_render__stored_bodies__are_never_changed() -> None:
    messages = [HI, call("a"), results("a"), call("a"), results("a")]
    ids(*messages)
    assert messages == [HI, call("a"), results("a"), call("a"), results("a")]


def test_convert__ids_used_again_or_odd__are_told_apart_in_anthropic() -> None:
    def made(id_: str) -> Message:
        function = {"name": "bash", "arguments": "{}"}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id_, "type": "function", "function": function}],
        }

    def answered(id_: str) -> Message:
        return {"role": "tool", "tool_call_id": id_, "content": "ok"}

    messages = [HI, made("f:0"), answered("f:0"), made("f:0"), answered("f:0")]
    shown = convert(Rendered(None, messages, [(i,) for i in range(1, 6)]), "anthropic").messages
    assert anthropic_violations(shown) == []
    assert [block.get("id") for turn in shown[1::2] for block in turn["content"]] == ["f_0", "f_0_2"]
