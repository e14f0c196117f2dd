"""Contexts of one format read in the other: equal for the model, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from compaction_service.engine import formats
from compaction_service.engine.formats.anthropic_turns import OPENING
from compaction_service.engine.formats.converting import Lossy, convert, convert_tools
from compaction_service.engine.projection import Parts, Rendered, render
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies import Body, Step, steps, stored, summary
from tests.unit.engine.strategies_anthropic import AnthropicStore

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PNG_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
LINK = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
LINK_URL = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
HI: Body = {"role": "user", "content": "hi"}


def text(value: str, **more: Any) -> Body:
    return {"type": "text", "text": value, **more}


def call(arguments: str = '{"q":1}', id_: str = "a", **more: Any) -> Body:
    return {"id": id_, "type": "function", "function": {"name": "bash", "arguments": arguments}, **more}


def use(**more: Any) -> Body:
    return {"type": "tool_use", "id": "a", "name": "bash", "input": {"q": 1}, **more}


def result(content: Any = "found", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": "a", "content": content, **more}


def context(*messages: Body, system: Any = None) -> Rendered:
    """Each message at the position of its number, from 1."""
    return Rendered(system, list(messages), [(i,) for i in range(1, len(messages) + 1)])


CALLED = {"role": "assistant", "content": None, "tool_calls": [call()]}
USED = {"role": "assistant", "content": [use()]}


def both(openai: list[Body], anthropic: list[Body]) -> Any:
    return openai, anthropic


SAME = {
    "text": both([HI], [HI]),
    "texts": both(
        [{"role": "user", "content": [text("a"), text("b")]}], [{"role": "user", "content": [text("a"), text("b")]}]
    ),
    "image": both([{"role": "user", "content": [PNG_URL, text("b")]}], [{"role": "user", "content": [PNG, text("b")]}]),
    "image at a URL": both([{"role": "user", "content": [LINK_URL]}], [{"role": "user", "content": [LINK]}]),
    "call": both([HI, CALLED], [HI, USED]),
    "call with text": both(
        [HI, {**CALLED, "content": "I look."}], [HI, {"role": "assistant", "content": [text("I look."), use()]}]
    ),
    "result": both(
        [HI, CALLED, {"role": "tool", "tool_call_id": "a", "content": "found"}],
        [HI, USED, {"role": "user", "content": [result()]}],
    ),
    "result and request": both(
        [HI, CALLED, {"role": "tool", "tool_call_id": "a", "content": "found"}, HI],
        [HI, USED, {"role": "user", "content": [result(), text("hi")]}],
    ),
    "instruction between": both(
        [HI, {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes."}],
        [HI, {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "Yes."}],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_convert__what_both_formats_have__is_the_same_there_and_back(name: str) -> None:
    openai, anthropic = SAME[name]

    assert convert(context(*openai), "anthropic").messages == anthropic
    assert convert(context(*anthropic), "openai").messages == openai


@pytest.mark.parametrize("system", ["Be brief.", [text("Be brief."), text("Be kind.")]])
def test_convert__system__goes_beside_the_messages_and_back(system: Any) -> None:
    openai = Rendered(None, [{"role": "system", "content": system}, HI], [(), (1,)])

    apart = convert(openai, "anthropic")
    assert apart == Rendered(system, [HI], [(1,)])
    assert convert(apart, "openai") == openai


@pytest.mark.parametrize("system", [None, "", []])
def test_convert__empty_system__is_no_message(system: Any) -> None:
    assert convert(context(HI, system=system), "openai").messages == [HI]


def test_convert__parallel_results__are_one_message_in_anthropic_and_one_each_in_openai() -> None:
    calls = [call(id_="a"), call(id_="b")]
    results = [{"role": "tool", "tool_call_id": id_, "content": id_} for id_ in "ab"]
    openai = context(HI, {"role": "assistant", "content": None, "tool_calls": calls}, *results)

    merged = convert(openai, "anthropic")
    assert [block["tool_use_id"] for block in merged.messages[2]["content"]] == ["a", "b"]
    assert merged.origins == [(1,), (2,), (3, 4)]
    back = convert(merged, "openai")
    assert back.messages == openai.messages
    assert back.origins == [(1,), (2,), (3, 4), (3, 4)]


def test_convert__assistant_first__gets_the_opening_that_anthropic_needs() -> None:
    assert convert(context({"role": "assistant", "content": "Hello!"}), "anthropic").messages[0] == OPENING


def test_convert__hints_and_keys_that_say_nothing__are_dropped() -> None:
    anthropic = context(
        HI,
        {"role": "assistant", "content": [text("I look.", citations=None, cache_control={"type": "ephemeral"}), use()]},
        {"role": "user", "content": [result(is_error=False)]},
        system=[text("Be brief.", cache_control={"type": "ephemeral"})],
    )
    told: Body = {"refusal": None, "annotations": [], "function_call": None}
    openai = [*SAME["call with text"][0], {"role": "tool", "tool_call_id": "a", "content": "found"}]

    assert convert(anthropic, "openai").messages == [{"role": "system", "content": "Be brief."}, *openai]
    shown = convert(context(HI, {**openai[1], **told}, openai[2]), "anthropic")
    assert shown == convert(context(*openai), "anthropic")


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ({"role": "developer", "content": "x"}, "role developer"),
        ({"role": "function", "name": "f", "content": "x"}, "role function"),
        ({"role": "user", "name": "ann", "content": "x"}, "`name`"),
        ({"role": "user", "content": ""}, "empty"),
        ({"role": "user", "content": [text(" ")]}, "blank"),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
            "`input_audio`",
        ),
        ({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}, "`file`"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a", "detail": "low"}}]},
            "`detail`",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AA"}}]},
            "image",
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, "`refusal`"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, "`refusal`"),
        ({"role": "assistant", "audio": {"id": "x"}}, "`audio`"),
        ({"role": "assistant", "content": "x", "reasoning_content": "Hm."}, "`reasoning_content`"),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, "`function_call`"),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}]},
            "`custom`",
        ),
        ({"role": "assistant", "tool_calls": [call("[1]")]}, "arguments"),
        ({"role": "assistant", "tool_calls": [call("{")]}, "arguments"),
        ({"role": "assistant", "tool_calls": [call(index=1)]}, "`index`"),
    ],
)
def test_convert__no_equal_in_anthropic__names_the_position_and_what(message: Body, what: str) -> None:
    with pytest.raises(Lossy) as lossy:
        convert(context(HI, message), "anthropic")
    assert lossy.value.where == "position 2"
    assert what in lossy.value.what


@pytest.mark.parametrize("block", [PNG_URL, text("")])
def test_convert__system_with_no_equal_in_anthropic__is_named(block: Body) -> None:
    message = {"role": "system", "content": [text("x"), block]}
    with pytest.raises(Lossy, match="system: "):
        convert(Rendered(None, [message, HI], [(), (1,)]), "anthropic")


def test_convert__system_message_that_anthropic_would_move__is_lossy() -> None:
    with pytest.raises(Lossy, match="position 2"):
        convert(context(HI, {"role": "system", "content": "Be brief."}, HI), "anthropic")


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ({"role": "user", "content": [text("x", citations=[{}])]}, "`citations`"),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}, "`document`"),
        ({"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}, "`file`"),
        ({"role": "user", "content": [result(is_error=True)]}, "`is_error`"),
        ({"role": "user", "content": [result([PNG])]}, "`image`"),
        ({"role": "user", "content": [{"type": "compaction", "content": "x"}]}, "`compaction`"),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, text("x")]},
            "`thinking`",
        ),
        (
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "s"}, text("x")]},
            "`redacted_thinking`",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
            },
            "`server_tool_use`",
        ),
        ({"role": "assistant", "content": [use(caller={"type": "direct"})]}, "`caller`"),
        ({"role": "assistant", "content": [use(), text("x")]}, "text after"),
        ({"role": "assistant", "content": [PNG]}, "`image`"),
    ],
)
def test_convert__no_equal_in_openai__names_the_position_and_what(message: Body, what: str) -> None:
    with pytest.raises(Lossy) as lossy:
        convert(context(HI, message), "openai")
    assert lossy.value.where == "position 2"
    assert what in lossy.value.what


def test_convert_tools__functions__are_custom_tools_and_back() -> None:
    openai = [{"type": "function", "function": {"name": "f", "description": "Finds.", "parameters": SCHEMA}}]
    anthropic = [{"name": "f", "description": "Finds.", "input_schema": SCHEMA}]

    assert convert_tools(openai, "anthropic") == anthropic
    assert convert_tools(anthropic, "openai") == openai
    assert convert_tools([{**anthropic[0], "type": "custom"}], "openai") == openai
    assert convert_tools(None, "openai") is None


def test_convert_tools__function_without_parameters__takes_an_empty_object() -> None:
    (tool,) = convert_tools([{"type": "function", "function": {"name": "f"}}], "anthropic")
    assert tool == {"name": "f", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("tool", "target"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, "openai"),
        ({"name": "f", "input_schema": SCHEMA, "defer_loading": True}, "openai"),
        ({"type": "custom", "custom": {"name": "f"}}, "anthropic"),
        ({"type": "function", "function": {"name": "f", "strict": True, "parameters": SCHEMA}}, "anthropic"),
        ({"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}, "anthropic"),
    ],
)
def test_convert_tools__no_equal__is_lossy(tool: Body, target: str) -> None:
    with pytest.raises(Lossy, match="tools: "):
        convert_tools([tool], target)


def _storable(step: Step) -> bool:
    """Not three calls at once: the third may take the id of the first, which the service refuses."""
    kind, number, _ = step
    return kind != "call" or number % 3 < 2


def _sayable(step: Step) -> bool:
    kind, _, said = step
    return kind != "developer" and (kind == "result" or said.strip() != "")


@given(played=st.lists(steps.filter(_storable).filter(_sayable), max_size=20), summed=st.booleans())
def test_convert__openai_context_with_equals__is_valid_and_the_same_back(played: list[Step], summed: bool) -> None:
    summaries = (summary("What was done.", 1, 1),) if summed else ()
    parts = Parts(system="Be brief.", summaries=summaries, tail=tuple(stored(played)))
    openai = render(formats.get("openai"), parts)

    anthropic = convert(openai, "anthropic")
    assert anthropic_violations(anthropic.messages, anthropic.system) == []
    opened = anthropic.messages[:1] == [OPENING]
    first = 2 if opened else 1
    back = convert(anthropic, "openai").messages
    assert openai_violations(back) == []
    assert [*said(back[:1]), *said(back[first:])] == [*said(openai.messages)]


@given(played=st.lists(steps.filter(_storable), max_size=12), target=st.sampled_from(formats.NAMES))
def test_convert__any_context__is_refused_by_name_or_valid_in_the_other_format(played: list[Step], target: str) -> None:
    if target == "openai":
        tail = tuple(AnthropicStore().play(played).entries)
        rendered = render(formats.get("anthropic"), Parts(tail=tail))
    else:
        rendered = render(formats.get("openai"), Parts(tail=tuple(stored(played))))
    try:
        made = convert(rendered, target)
    except Lossy:
        event("lossy")
        return
    if target == "anthropic":
        assert anthropic_violations(made.messages, made.system) == []
    else:
        assert openai_violations(made.messages) == []
        assert [*said(convert(made, "anthropic").messages)] == [*said(rendered.messages)]


def said(messages: list[Body]) -> Iterator[Any]:
    """What a model reads, piece by piece, whatever the format and the borders of messages. Calls are told by their
    number: an id means nothing but which result is whose."""
    calls: dict[str, int] = {}
    numbers = count(1)
    for kind, *rest in _pieces(messages):
        if kind == "call":
            calls[rest[0]] = next(numbers)
        yield kind, *([calls[rest[0]], *rest[1:]] if kind in ("call", "result") else rest)


def _pieces(messages: list[Body]) -> Iterator[Any]:
    for message in messages:
        content = message.get("content") or []
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], content
            continue
        for block in [text(content)] if isinstance(content, str) else content:
            yield from _block(message["role"], block)
        for made in message.get("tool_calls", ()):
            yield "call", made["id"], made["function"]["name"], json.loads(made["function"]["arguments"])


def _block(role: str, block: Body) -> Iterator[Any]:
    if block["type"] == "tool_result":
        content: Any = block.get("content")
        single = isinstance(content, list) and len(content) == 1
        yield "result", block["tool_use_id"], (content[0]["text"] if single else content) or []
    elif block["type"] == "tool_use":
        yield "call", block["id"], block["name"], block["input"]
    else:
        yield role, block
