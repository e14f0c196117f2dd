"""Anthropic messages: what they mean, what is refused, and what is made of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine import formats
from compaction_service.engine.formats.base import DELETED, Part
from compaction_service.engine.types import Answer, Call, Facts, MessageError

FORMAT = formats.get("anthropic")

Block = dict[str, Any]


def text(value: Any, **more: Any) -> Block:
    return {"type": "text", "text": value, **more}


def tool_use(id_: Any = "c1", name: Any = "bash", input_: Any = None) -> Block:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"cmd": "ls"} if input_ is None else input_}


def result(id_: Any = "c1", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": id_, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


THINKING = {"type": "thinking", "thinking": "hmm", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "AAAA"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
IMAGE_URL = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
IMAGE_FILE = {"type": "image", "source": {"type": "file", "file_id": "f1"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "B"}, "title": "Plan"}
NOTE = {"type": "document", "source": {"type": "content", "content": [text("inner")]}}
FOUND = {"type": "search_result", "source": "https://example.com", "title": "Found", "content": [text("a"), text("b")]}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
PAGE = {"type": "web_search_result", "title": "News", "url": "https://example.com", "encrypted_content": "CCCC"}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [PAGE]}
RAN = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "s2",
    "content": {"type": "bash_code_execution_result", "stdout": "ok", "stderr": "", "return_code": 0, "content": []},
}
MCP = {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "srv", "input": {"a": 1}}
MCP_DONE = {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [text("hi")]}
COMPACTED = {"type": "compaction", "content": "Before: hello."}

CALLING = assistant(THINKING, text("I look."), tool_use(), tool_use("c2", "sql", {}))
RESULTS = user(
    result(content="a\nb", is_error=True, cache_control={"type": "ephemeral"}),
    result("c2", content=[text("one"), IMAGE, text("two")]),
)
BOTH = user(result(content="done"), text("And now?"))
MEDIA = user(text("see {this} %s"), IMAGE, IMAGE_URL, IMAGE_FILE, PDF, NOTE, FOUND, {"type": "container_upload"})
SERVED = assistant(text("so"), SEARCH, SEARCHED, RAN, MCP, MCP_DONE, {"type": "hologram", "cube": 1})
VALID = [
    {"role": "user", "content": "hi"},
    {"role": "user", "content": ""},
    {"role": "user", "content": "\0\ud800"},
    user(),
    assistant(),
    user(text("")),
    user(text("x", cache_control={"type": "ephemeral", "ttl": "1h"})),
    {"role": "system", "content": "be kind"},
    {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "t"}}]},
    user(result()),
    user(result(content=[{"type": "tool_reference", "tool_name": "t"}])),
    assistant(REDACTED, text("no")),
    assistant(COMPACTED, text("go on")),
    assistant({"type": "compaction", "content": None}),
    {**assistant(text("x")), "id": "msg_1", "usage": {"input_tokens": 1}},
    MEDIA,
    SERVED,
    CALLING,
    RESULTS,
    BOTH,
]


@pytest.fixture(autouse=True)
def unchanged_inputs() -> Any:
    before = copy.deepcopy(VALID)
    yield
    assert before == VALID


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (VALID[0], Facts("user", request=True)),
        (VALID[1], Facts("user")),
        (user(), Facts("user")),
        (user(text(" \n")), Facts("user")),
        (MEDIA, Facts("user", request=True)),
        (user(IMAGE), Facts("user", request=True)),
        ({"role": "system", "content": "be kind"}, Facts("system")),
        (assistant(), Facts("assistant")),
        (SERVED, Facts("assistant")),
        (CALLING, Facts("assistant", calls=(Call("c1", "bash"), Call("c2", "sql")))),
        (RESULTS, Facts("user", answers=(Answer("c1", chars=3), Answer("c2", chars=7)))),
        (BOTH, Facts("user", answers=(Answer("c1", chars=4),), request=True)),
        (user(result(), text("")), Facts("user", answers=(Answer("c1"),))),
    ],
)
def test_read__valid_message__gives_its_facts(message: Any, facts: Facts) -> None:
    assert FORMAT.read(message, "messages.0") == facts


def test_read__results__say_where_their_ids_stand() -> None:
    read = FORMAT.read(user(text("first"), result("a"), result("b")), "messages.0")

    assert [answer.path for answer in read.answers] == ["content.1.tool_use_id", "content.2.tool_use_id"]


@pytest.mark.parametrize("message", VALID)
def test_read__valid_message__is_accepted(message: Any) -> None:
    assert FORMAT.read(message, "messages.0").role == message["role"]


@pytest.mark.parametrize(
    ("message", "code", "attr"),
    [
        ("hi", "invalid", ""),
        ({}, "required", ".role"),
        ({"role": "tool", "content": "x"}, "invalid", ".role"),
        ({"role": "developer", "content": "x"}, "invalid", ".role"),
        ({"role": "user"}, "required", ".content"),
        ({"role": "user", "content": None}, "invalid", ".content"),
        ({"role": "user", "content": {}}, "invalid", ".content"),
        (user("x"), "invalid", ".content.0"),
        (user({"text": "x"}), "required", ".content.0.type"),
        (user({"type": 1}), "invalid", ".content.0.type"),
        (user(text("x"), {"type": "text"}), "required", ".content.1.text"),
        (user(text(None)), "invalid", ".content.0.text"),
        (user({"type": "image"}), "required", ".content.0.source"),
        (user({"type": "image", "source": "http://x"}), "invalid", ".content.0.source"),
        (user({"type": "image", "source": {}}), "required", ".content.0.source.type"),
        (
            user({"type": "image", "source": {"type": "base64", "data": "A"}}),
            "required",
            ".content.0.source.media_type",
        ),
        (user({"type": "document", "source": {"type": "url"}}), "required", ".content.0.source.url"),
        (user(tool_use()), "invalid", ".content.0.type"),
        (user(THINKING), "invalid", ".content.0.type"),
        (user(REDACTED), "invalid", ".content.0.type"),
        ({"role": "system", "content": [result()]}, "invalid", ".content.0.type"),
        (assistant(result()), "invalid", ".content.0.type"),
        (assistant({"type": "thinking", "thinking": "x"}), "required", ".content.0.signature"),
        (assistant({"type": "redacted_thinking"}), "required", ".content.0.data"),
        (assistant(text("x"), tool_use(id_="")), "invalid", ".content.1.id"),
        (assistant(tool_use(name=3)), "invalid", ".content.0.name"),
        (assistant(tool_use(input_="{}")), "invalid", ".content.0.input"),
        (assistant({"type": "tool_use", "id": "a", "name": "b"}), "required", ".content.0.input"),
        (assistant(tool_use(), text("x"), tool_use()), "duplicate_call_id", ".content.2.id"),
        (user({"type": "tool_result"}), "required", ".content.0.tool_use_id"),
        (user(result(content=3)), "invalid", ".content.0.content"),
        (user(result(content=[{"type": "text"}])), "required", ".content.0.content.0.text"),
        (user(result(content=[result()])), "invalid", ".content.0.content.0.type"),
    ],
)
def test_read__message_the_api_would_refuse__names_the_place(message: Any, code: str, attr: str) -> None:
    with pytest.raises(MessageError) as caught:
        FORMAT.read(message, "messages.3")

    assert (caught.value.code, caught.value.attr) == (code, f"messages.3{attr}")
    assert caught.value.detail.endswith(".")


OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "attr"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "x"}, ".role"),
        ({"role": "function", "name": "f", "content": "x"}, ".role"),
        ({"role": "developer", "content": "x"}, ".role"),
        ({"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}, ".tool_calls"),
        ({"role": "assistant", "content": "let me see", "tool_calls": [OPENAI_CALL]}, ".tool_calls"),
        ({"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}, ".function_call"),
        (user(text("x"), {"type": "image_url", "image_url": {"url": "http://x"}}), ".content.1.type"),
        (user({"type": "input_audio", "input_audio": {"data": "A"}}), ".content.0.type"),
        (user({"type": "file", "file": {"file_id": "f"}}), ".content.0.type"),
        (assistant({"type": "refusal", "refusal": "no"}), ".content.0.type"),
    ],
)
def test_read__message_of_the_openai_format__is_refused_naming_both_formats(message: Any, attr: str) -> None:
    with pytest.raises(MessageError) as caught:
        FORMAT.read(message, "messages.3")

    assert (caught.value.code, caught.value.attr) == ("invalid", f"messages.3{attr}")
    assert "`format` here is anthropic" in caught.value.detail
    assert "`format: openai`" in caught.value.detail


def test_read__calls_that_are_null_or_empty__are_none() -> None:
    message: dict[str, Any] = {"role": "assistant", "content": "x", "tool_calls": [], "function_call": None}

    assert FORMAT.read(message, "messages.0").response


def test_check_tools__tool_of_the_openai_format__is_refused_naming_both_formats() -> None:
    with pytest.raises(MessageError, match="`format: openai`") as caught:
        FORMAT.check_tools([{"type": "function", "function": {"name": "f"}}], "tools")

    assert caught.value.attr == "tools.0.type"


BLOCKS = st.sampled_from([block for message in VALID for block in message["content"] if isinstance(block, dict)])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | BLOCKS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("type", "text", "id", "name", "input", "tool_use_id", "content", "source", "thinking", "signature", "is_error")
MUTATED_BLOCKS = st.builds(
    lambda base, changes, gone: {k: v for k, v in {**base, **changes}.items() if k not in gone},
    BLOCKS,
    st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, max_size=2),
    st.sets(st.sampled_from(KEYS), max_size=1),
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": st.text(max_size=5) | st.lists(BLOCKS | MUTATED_BLOCKS, max_size=4),
    }
)


def outcome(message: Any) -> Facts | MessageError:
    try:
        return FORMAT.read(message, "m")
    except MessageError as error:
        return error


@given(JSON_VALUES | MESSAGES)
def test_read__any_json__is_accepted_whole_or_refused_with_a_place(message: Any) -> None:
    facts = outcome(message)
    if isinstance(facts, MessageError):
        assert facts.attr.startswith("m")
        return
    stub = FORMAT.deleted_stub(message)
    again = FORMAT.read(stub, "m")
    ids = [answer.id for answer in facts.answers]
    assert (again.role, again.calls, [a.id for a in again.answers]) == (facts.role, facts.calls, ids)
    parts = FORMAT.parts(message)
    assert [part.id for part in parts if part.kind == "call"] == [call.id for call in facts.calls]
    results = [part for part in parts if part.kind == "result" and part.id is not None]
    assert [(part.id, len(part.text)) for part in results] == [(answer.id, answer.chars) for answer in facts.answers]
    arranged, origins = FORMAT.arrange([message], [(7,)])
    assert len(arranged) == len(origins)
    assert FORMAT.arrange(arranged, origins) == (arranged, origins)
    for index in range(len(ids)):
        masked = FORMAT.read(FORMAT.mask(message, (index,), ["bash"] * len(ids)), "m")
        assert [answer.id for answer in masked.answers] == ids


def test_leading_system__any_message__is_none() -> None:
    assert FORMAT.leading_system({"role": "system", "content": "x"}) is None
    assert FORMAT.system_messages("be kind") == []


@pytest.mark.parametrize("system", [None, "", "be kind", [], [text("a", cache_control={"type": "ephemeral"})]])
def test_check_system__string_or_text_blocks__is_accepted(system: Any) -> None:
    FORMAT.check_system(system, "system")


@pytest.mark.parametrize(
    ("system", "attr"),
    [
        (1, "system"),
        ({"role": "system", "content": "x"}, "system"),
        (["x"], "system.0"),
        ([{"type": "text"}], "system.0.text"),
        ([text("a"), text("")], "system.1.text"),
        ([IMAGE], "system.0.type"),
    ],
)
def test_check_system__not_a_system__names_the_place(system: Any, attr: str) -> None:
    with pytest.raises(MessageError) as caught:
        FORMAT.check_system(system, "system")

    assert caught.value.attr == attr


def test_tool_names__custom_and_server_tools__those_with_a_name() -> None:
    tools = [
        {"name": "bash", "input_schema": {"type": "object"}},
        {"type": "custom", "name": "sql", "input_schema": {}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "mcp_toolset", "mcp_server_name": "srv"},
    ]
    FORMAT.check_tools(tools, "tools")

    assert FORMAT.tool_names(tools) == ("bash", "sql", "web_search")
    assert FORMAT.tool_names(None) == FORMAT.tool_names([]) == ()


@pytest.mark.parametrize(
    ("tools", "attr"),
    [
        ({}, "tools"),
        (["x"], "tools.0"),
        ([{"name": "f"}], "tools.0.input_schema"),
        ([{"name": "f", "input_schema": "object"}], "tools.0.input_schema"),
        ([{"input_schema": {}}], "tools.0.name"),
        ([{"type": 3}], "tools.0.type"),
        ([{"type": "custom", "name": ""}], "tools.0.name"),
    ],
)
def test_check_tools__not_tools__names_the_place(tools: Any, attr: str) -> None:
    with pytest.raises(MessageError) as caught:
        FORMAT.check_tools(tools, "tools")

    assert caught.value.attr == attr


def test_mask__one_of_two_results__keeps_the_other_and_all_keys() -> None:
    first, second = RESULTS["content"]

    assert FORMAT.mask(RESULTS, (1,), ("bash", "sql"))["content"] == [
        first,
        {**second, "content": [text("[Previous: used sql]")]},
    ]
    assert FORMAT.mask(RESULTS, (0,), ("bash", "sql"))["content"] == [
        {**first, "content": "[Previous: used bash]"},
        second,
    ]
    assert FORMAT.mask(RESULTS, (), ("bash", "sql")) is RESULTS


def test_mask__results_among_other_blocks__leaves_those() -> None:
    mixed = user(text("see"), result("a", content="long"), text("and"), result("b"))

    assert FORMAT.mask(mixed, (1,), ("x", None)) == user(
        text("see"), result("a", content="long"), text("and"), result("b", content="[Previous: used unknown]")
    )


def test_shorten__result__shows_the_text_in_its_own_shape() -> None:
    first, second = RESULTS["content"]

    assert FORMAT.shorten(RESULTS, 1, "head")["content"] == [first, {**second, "content": [text("head")]}]
    assert FORMAT.shorten(RESULTS, 0, "head")["content"] == [{**first, "content": "head"}, second]


def test_shorten_text__blocks__thinking_calls_and_media_stay() -> None:
    message = assistant(THINKING, text("a", citations=[]), IMAGE, text("b"), COMPACTED, tool_use())

    assert FORMAT.shorten_text(message, "ab") == assistant(THINKING, text("ab"), IMAGE, tool_use())
    assert FORMAT.shorten_text(VALID[0], "h") == {"role": "user", "content": "h"}


def test_synthetic_result__call__answers_it() -> None:
    made = FORMAT.synthetic_result(Call("c1", "bash"), "none")

    assert FORMAT.read(made, "m") == Facts("user", answers=(Answer("c1", chars=4),))


def test_summary_message__text_and_prefix__is_labelled_data_from_the_user() -> None:
    message = FORMAT.summary_message("{did} 100%", "[compressed] ")
    (block,) = message["content"]

    assert message["role"] == "user"
    assert block["text"].startswith("[compressed] This is a summary of the earlier part of this conversation")
    assert block["text"].endswith("<conversation_summary>\n{did} 100%\n</conversation_summary>")


@pytest.mark.parametrize(
    ("message", "stub"),
    [
        (VALID[0], user(text(DELETED))),
        (assistant(), assistant(text(DELETED))),
        (BOTH, user(result(content=DELETED))),
        (RESULTS, user(result(content=DELETED), result("c2", content=DELETED))),
        (CALLING, assistant(text(DELETED), tool_use(input_={}), tool_use("c2", "sql", {}))),
        (SERVED, assistant(text(DELETED))),
    ],
)
def test_deleted_stub__message__keeps_only_what_the_exchange_needs(message: Any, stub: Any) -> None:
    assert FORMAT.deleted_stub(message) == stub


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (VALID[0], (Part("text", "hi"),)),
        (VALID[1], ()),
        (
            MEDIA,
            (
                Part("text", "see {this} %s"),
                *(Part("media", "image"),) * 3,
                Part("media", "document Plan"),
                Part("result", "inner", "document"),
                Part("result", "https://example.com\nFound\na\nb", "search_result"),
                Part("media", "container_upload"),
            ),
        ),
        (
            CALLING,
            (
                Part("thinking", "hmm"),
                Part("text", "I look."),
                Part("call", '{"cmd":"ls"}', "bash", "c1"),
                Part("call", "{}", "sql", "c2"),
            ),
        ),
        (
            RESULTS,
            (Part("result", "a\nb", None, "c1"), Part("result", "one\ntwo", None, "c2"), Part("media", "image")),
        ),
        (user(result(content=[FOUND])), (Part("result", "https://example.com\nFound\na\nb", None, "c1"),)),
        (BOTH, (Part("result", "done", None, "c1"), Part("text", "And now?"))),
        (
            SERVED,
            (
                Part("text", "so"),
                Part("media", "web_search x"),
                Part("result", "News\nhttps://example.com", "web_search"),
                Part("result", "ok\n0", "bash_code_execution"),
                Part("media", "echo 1"),
                Part("result", "hi", "mcp"),
                Part("media", "hologram"),
            ),
        ),
        (assistant(REDACTED, COMPACTED), (Part("text", "Before: hello."),)),
    ],
)
def test_parts__message__are_its_content_in_order(message: Any, parts: tuple[Part, ...]) -> None:
    assert FORMAT.parts(message) == parts
