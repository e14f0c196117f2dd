"""Stored Anthropic messages as the turns the API takes."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.fit import Overflow, fit
from compaction_service.engine.formats import anthropic
from compaction_service.engine.formats.base import NO_RESULT, summary_text
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.types import Call
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies import OVERHEAD, Step, conversations, count, summary
from tests.unit.engine.strategies_anthropic import (
    IMAGE,
    REDACTED,
    SEARCH,
    THINKING,
    AnthropicStore,
    body_tokens,
    flat,
    says_nothing,
    stored,
    text,
)

Message = dict[str, Any]
OPENING: Message = anthropic.opening({"role": "assistant", "content": "x"}) or {}
SYNTHETIC = body_tokens(anthropic.synthetic_result(Call("x", "bash"), NO_RESULT))


def user(*blocks: Any) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def system(*blocks: Any) -> Message:
    return {"role": "system", "content": list(blocks)}


def call(*ids: str) -> Message:
    return assistant(*({"type": "tool_use", "id": id_, "name": "bash", "input": {}} for id_ in ids))


def result(id_: str, content: Any = "ok", **more: Any) -> Message:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def context(*messages: Message) -> list[Message]:
    rendered = render(anthropic, Parts("Be brief.", tail=stored(messages)))
    assert rendered.system == "Be brief."
    assert anthropic_violations(rendered.messages, rendered.system) == []
    return rendered.messages


HI, HELLO = user(text("hi")), assistant(text("hello"))


def test_arrange__turns_that_alternate__are_passed_by_reference() -> None:
    messages = [
        HI,
        HELLO,
        {"role": "user", "content": "go on "},
        call("x"),
        user(result("x")),
        assistant(text(" "), text("a")),
    ]

    assert all(new is old for new, old in zip(context(*messages), messages, strict=True))


def test_arrange__two_messages_of_a_role__are_one_with_all_blocks_in_order() -> None:
    tagged = {**text("b"), "cache_control": {"type": "ephemeral"}}

    assert context({"role": "user", "content": "a"}, user(tagged, IMAGE), HELLO, assistant(text("```python"))) == [
        user(text("a"), tagged, IMAGE),
        assistant(text("hello"), text("```python")),
    ]


def test_arrange__request_behind_a_summary__is_a_block_behind_it() -> None:
    rendered = render(anthropic, Parts(summaries=(summary("done", 1, 2), summary("more", 3, 4)), tail=stored([HI])))

    assert rendered.messages == [user(text(summary_text("done")), text(summary_text("more")), text("hi"))]
    assert rendered.origins == [(1,)]


def test_arrange__results_of_one_turn__come_first_whatever_they_came_with() -> None:
    shown = context(HI, call("x", "y"), user(text("wait"), result("x")), user(text("so"), result("y"), text("?")))

    assert shown[2] == user(result("x"), result("y"), text("wait"), text("so"), text("?"))


def test_arrange__request_between_call_and_result__is_shown_behind_the_result() -> None:
    assert context(HI, call("x"), user(text("hurry")), user(result("x")))[2:] == [user(result("x"), text("hurry"))]


def test_arrange__open_calls_at_the_very_end__stay_open() -> None:
    assert context(HI, call("x", "y")) == [HI, call("x", "y")]
    assert context(HI, call("x", "y"), user(result("y")))[2:] == [user(result("y"))]


@pytest.mark.parametrize(
    "after",
    [
        [user(result("y"), text("and x?"))],
        [user(result("y")), user(text("and x?"))],
        [user(text("and x?"), result("y"))],
    ],
)
def test_arrange__open_call_that_a_request_follows__has_a_synthetic_result_before_it(after: list[Message]) -> None:
    made_up = result("x", NO_RESULT)

    assert context(HI, call("x", "y"), *after)[2:] == [user(result("y"), made_up, text("and x?"))]
    assert context(HI, call("x", "y"), *after, user(result("x")))[2:] == [
        user(result("y"), result("x"), text("and x?"))
    ]


def test_arrange__abandoned_call__has_a_synthetic_result() -> None:
    assert context(HI, call("x"), HELLO)[2:] == [user(result("x", NO_RESULT)), HELLO]


@pytest.mark.parametrize("first", [HELLO, call("x"), assistant(*SEARCH)])
def test_arrange__assistant_first__the_user_opens(first: Message) -> None:
    assert context(first) == [OPENING, first]
    assert context(user(text("")), first) == [OPENING, first]


@pytest.mark.parametrize(
    "nothing", [assistant(), user(text("")), {"role": "assistant", "content": " \n"}, assistant(THINKING)]
)
def test_arrange__message_that_shows_nothing__is_left_out(nothing: Message) -> None:
    assert context(HI, nothing, user(text("there")), HELLO, nothing) == [user(text("hi"), text("there")), HELLO]


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([text(""), text("a")], [text("a")]),
        ([text(" "), text("a"), text("\n")], [text(" "), text("a"), text("\n")]),
        ([text(" "), *SEARCH], SEARCH),
        ([THINKING, text("a"), THINKING, REDACTED], [THINKING, text("a")]),
        ([text("a"), THINKING, text("")], [text("a")]),
        ([THINKING, REDACTED, *SEARCH], [THINKING, REDACTED, *SEARCH]),
    ],
)
def test_arrange__blocks_the_api_refuses__are_left_out_whole(blocks: list[Any], kept: list[Any]) -> None:
    assert context(HI, assistant(*blocks)) == [HI, assistant(*kept)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (result("x", [text(""), text("a")]), result("x", [text("a")])),
        (result("x", [text("")]), result("x", "")),
        (result("x", "", is_error=True), result("x", "")),
        (result("x", [text("no")], is_error=True), result("x", [text("no")], is_error=True)),
    ],
)
def test_arrange__result_without_content__says_neither_text_nor_error(given: Message, shown: Message) -> None:
    assert context(HI, call("x"), user(given))[2:] == [user(shown)]


def test_arrange__message_as_the_api_answered_it__is_shown_without_its_other_keys() -> None:
    answered = {**HELLO, "id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": {"output_tokens": 1}}

    assert context(HI, answered) == [HI, HELLO]


def test_arrange__system_message__stands_behind_its_user_turn() -> None:
    told = system(text("Be formal."))

    assert context(HI, told, HELLO) == [HI, told, HELLO]
    assert context(HI, told, user(text("there")), HELLO) == [user(text("hi"), text("there")), told, HELLO]
    assert context(HI, call("x"), told, user(result("x"))) == [HI, call("x"), user(result("x")), told]
    assert context(HI, told, told)[1:] == [system(text("Be formal."), text("Be formal."))]
    assert context(HI, assistant(*SEARCH), told, HELLO) == [HI, assistant(*SEARCH), told, HELLO]


def test_arrange__system_message_without_a_user_turn__is_the_user_s() -> None:
    addition = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "t"}}

    assert context(HI, HELLO, system(text("Be formal."), addition)) == [HI, HELLO, user(text("Be formal."))]
    assert context(HI, HELLO, system(addition)) == [HI, HELLO]
    assert context({"role": "system", "content": "Be formal."}, HELLO) == [user(text("Be formal.")), HELLO]


def test_render__masked_result_of_two__is_a_placeholder_in_place() -> None:
    entries = stored(
        [HI, call("x", "y"), user(result("x", "long"), result("y", [text("longer"), IMAGE], is_error=True))]
    )
    masked = (*entries[:2], replace(entries[2], masked=(1,)))

    assert render(anthropic, Parts(tail=masked)).messages[2] == user(
        result("x", "long"), result("y", [text("[Previous: used bash]")], is_error=True)
    )


@given(conversations)
def test_render__any_conversation__is_valid_shows_all_and_costs_at_most_the_sum(played: list[Step]) -> None:
    parts = Parts(tail=tuple(AnthropicStore(SYNTHETIC).play(played).entries))
    rendered = render(anthropic, parts)

    assert anthropic_violations(rendered.messages) == []
    assert sorted(p for origin in rendered.origins for p in origin) == [
        entry.position for entry in parts.tail if not says_nothing(entry.body)
    ]
    counted = part_tokens(parts, system_tokens=0, tools_tokens=0, synthetic_tokens=SYNTHETIC)
    assert sum(map(body_tokens, rendered.messages)) <= counted["tail"]
    thoughts = [block for _, block in flat(rendered.messages) if "thinking" in block["type"]]
    assert all(block in (THINKING, REDACTED) for block in thoughts)


@given(conversations, st.integers(0, 2500))
def test_fit__any_conversation_and_budget__fits_and_is_valid(played: list[Step], budget: int) -> None:
    entries = AnthropicStore(SYNTHETIC).play(played).entries
    margin = body_tokens(OPENING)  # what a context that comes to begin with the assistant needs
    with contextlib.suppress(Overflow):
        done = fit(
            anthropic,
            Parts(tail=tuple(entries)),
            budget=budget,
            system_tokens=0,
            tools_tokens=0,
            synthetic_tokens=SYNTHETIC,
            count=count,
            extract=lambda span, room: summary("abc " * (room - OVERHEAD), span[0].position, span[-1].position),
        )
        messages = render(anthropic, done.parts).messages
        assert anthropic_violations(messages) == []
        labels = sum(count(summary_text(node.text)) - count(node.text) for node in done.parts.summaries)
        assert sum(map(body_tokens, messages)) - labels <= done.tokens + margin
        assert done.tokens <= budget
        if request := next((entry for entry in reversed(entries) if entry.facts.request), None):
            assert any(request.position in origin for origin in render(anthropic, done.parts).origins)
