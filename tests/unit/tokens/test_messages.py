"""Counting messages, system and tools."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.tokens.families import family
from compaction_service.tokens.messages import Counter, counter_for
from tests.unit.tokens.test_media import b64, png

GPT = counter_for("o200k_base", 1.0)
CLAUDE = counter_for("cl100k_base/claude-4.5", 1.1)
COUNTERS = (GPT, CLAUDE, counter_for("o200k_base/other", 1.1))
FORMATS = ("openai", "anthropic")
NOISE = base64.b64encode(random.Random(3).randbytes(90_000)).decode()  # noqa: S311

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(st.characters(), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = [
    "role", "content", "name", "tool_calls", "function_call", "tool_call_id", "type", "text", "source", "data", "file",
    "image_url", "url", "input", "input_audio", "function", "arguments", "media_type", "parameters", "properties",
    "items",
]  # fmt: skip
KINDS = ["text", "image", "image_url", "document", "file", "input_audio", "tool_use", "tool_result", "thinking",
         "redacted_thinking", "web_search_result", "compaction", "object", "array"]  # fmt: skip
# JSON that looks like messages but is wrong in every way.
odd_messages = st.recursive(
    json_values | st.sampled_from(KINDS),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize("fmt", FORMATS)
@given(value=odd_messages)
def test_counter__any_json__is_counted_without_an_error(fmt: str, value: Any) -> None:
    for counter in COUNTERS:
        for tokens in (counter.message(fmt, value), counter.system(fmt, value), counter.tools(fmt, value)):
            assert isinstance(tokens, int)
            assert tokens >= 0


@pytest.mark.parametrize("counter", COUNTERS)
def test_message__nested_beyond_any_recursion__is_counted(counter: Counter) -> None:
    deep: Any = {"type": "text", "text": "bottom"}
    for _ in range(50_000):
        deep = {"type": "tool_result", "content": [deep]}
    assert counter.message("anthropic", {"role": "user", "content": [deep]}) > 50_000
    nested: Any = "bottom"
    for _ in range(50_000):
        nested = {"a": [nested]}
    assert counter.message("openai", {"role": "user", "content": [nested]}) > 50_000
    assert counter.tools("openai", [{"name": "deep", "parameters": nested}]) > 0


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{NOISE}"}}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{NOISE}"}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": NOISE, "format": "mp3"}}]},
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": NOISE}}],
        },
        {"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": NOISE}}]},
        {"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": NOISE}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": [{"type": "image", "source": {"data": NOISE}}]}],
        },
        {"role": "user", "content": [{"type": "something_new", "payload": {"blob": NOISE}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": NOISE}]},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1", "data": NOISE}},
    ],
)
def test_message__base64_of_any_kind__is_never_counted_as_text(counter: Counter, message: dict[str, Any]) -> None:
    assert counter.message("openai", message) < 6000 < counter.text(NOISE)


@pytest.mark.parametrize("key", ["data", "content"])
def test_message__base64_in_the_input_of_a_call__is_text_that_the_model_reads(key: str) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "write", "input": {key: NOISE}}
    assert CLAUDE.message("anthropic", {"role": "assistant", "content": [call]}) > CLAUDE.text(NOISE)


def test_message__plain_text__is_its_tokens_and_four() -> None:
    assert GPT.message("openai", {"role": "user", "content": "How do I cross the street?"}) == 7 + 4


@pytest.mark.parametrize("content", [None, "", []])
def test_message__empty_content__is_the_overhead(content: Any) -> None:
    assert GPT.message("openai", {"role": "assistant", "content": content}) == 4
    assert GPT.message("openai", {"role": "assistant"}) == 4


def test_message__parts__count_like_their_texts() -> None:
    parts = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]
    assert GPT.message("openai", {"role": "user", "content": parts}) == 4 + GPT.text("Hello") + GPT.text("there")


def test_message__calls_of_both_shapes__count_name_and_arguments() -> None:
    function = {"name": "weather", "arguments": '{"place":"Oslo"}'}
    new = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    old = {"role": "assistant", "content": None, "function_call": function}
    expected = 4 + 6 + GPT.text("weather") + GPT.text('{"place":"Oslo"}')
    assert GPT.message("openai", new) == GPT.message("openai", old) == expected


def test_message__refusal_and_name__are_counted() -> None:
    plain = GPT.message("openai", {"role": "assistant", "content": None})
    assert GPT.message("openai", {"role": "assistant", "content": None, "refusal": "I cannot."}) == plain + GPT.text(
        "I cannot."
    )
    assert GPT.message("openai", {"role": "user", "content": None, "name": "Ann"}) == plain + 1 + GPT.text("Ann")


def test_message__anthropic_blocks__count_calls_and_nested_results() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "print(1)"}]}
    assert CLAUDE.message("anthropic", {"role": "assistant", "content": [call]}) > CLAUDE.text("read_file path a.py")
    longer = {**result, "content": [{"type": "text", "text": "print(1)\n" * 100}]}
    difference = CLAUDE.message("anthropic", {"content": [longer]}) - CLAUDE.message("anthropic", {"content": [result]})
    assert difference == CLAUDE.text("print(1)\n" * 100) - CLAUDE.text("print(1)")


def test_message__picture_for_claude__has_its_charge_once_the_factor_is_applied() -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(png(750, 1000))}}
    tokens = CLAUDE.message("anthropic", {"role": "user", "content": [block]}) - CLAUDE.message(
        "anthropic", {"content": []}
    )
    assert tokens * CLAUDE.factor == pytest.approx(1000, abs=2)


def test_message__text_document__is_counted_as_text() -> None:
    text = "The harbour opens at nine. " * 200
    inline = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    encoded = {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": b64(text.encode())}}
    file = {"type": "file", "file": {"file_data": f"data:text/plain;base64,{b64(text.encode())}"}}
    for block in (inline, encoded, file):
        assert CLAUDE.message("anthropic", {"role": "user", "content": [block]}) == CLAUDE.text(text) + 4


def test_system__none__is_what_any_request_costs() -> None:
    assert GPT.system("openai", None) == GPT.system("openai", "") == 3
    assert GPT.system("openai", "Be brief.") == 3 + 4 + GPT.text("Be brief.")


def test_system__text_blocks_and_message__count_alike() -> None:
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert CLAUDE.system("anthropic", blocks) == CLAUDE.system("anthropic", "Be brief.")
    message = {"role": "system", "content": "Be brief."}
    assert GPT.system("openai", message) == GPT.system("openai", "Be brief.")


def test_tools__both_shapes_of_one_tool__count_alike() -> None:
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "City"}},
        "required": ["place"],
    }
    openai = [{"type": "function", "function": {"name": "weather", "description": "Weather", "parameters": schema}}]
    anthropic = [{"name": "weather", "description": "Weather", "input_schema": schema}]
    for counter in COUNTERS:
        assert counter.tools("openai", openai) == counter.tools("anthropic", anthropic) > 0
        assert counter.tools("openai", None) == counter.tools("openai", []) == 0


def test_tools__anthropic_server_tools__bring_their_instructions() -> None:
    search = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]
    assert CLAUDE.tools("anthropic", search) * CLAUDE.factor > 2000
    assert GPT.tools("openai", [{"type": "web_search"}]) < 20


def test_counter__default_factor__is_the_familys() -> None:
    assert counter_for("cl100k_base/claude-3", family("cl100k_base/claude-3").factor).factor == pytest.approx(1.1)
