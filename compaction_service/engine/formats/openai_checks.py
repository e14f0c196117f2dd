"""What the OpenAI chat API takes as a message, a system prompt and tools. Keys it does not name are let through."""

from __future__ import annotations

from collections.abc import Iterator

from compaction_service.engine.formats.checks import (
    child,
    choice,
    few_calls,
    invalid,
    items,
    member,
    object_,
    other_format,
    string,
)
from compaction_service.engine.types import JSON, Call, MessageError

LEGACY_ID = "function_call:"  # a legacy function_call has no id: it gets this and its function's name

SYSTEM_ROLES = ("system", "developer")
ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool", "function")
CALL_KINDS = {"function": "arguments", "custom": "input"}  # the text each kind of tool call carries

# Blocks of Anthropic's messages. Other providers' chat APIs have parts called like some of these, in another shape.
_ANTHROPIC = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking", "container_upload"})
_ANTHROPIC_SOURCES = frozenset({"image", "document", "search_result"})


def _is_anthropic(part: dict[str, JSON], kind: str) -> bool:
    if kind == "thinking":
        return isinstance(part.get(kind), str)
    if kind in _ANTHROPIC_SOURCES:
        return "source" in part
    return kind in _ANTHROPIC or kind.endswith("tool_result")


def check_chat(body: dict[str, JSON], attr: str) -> None:
    """Items of the Responses API (reasoning, calls, compaction) have a type and no role: chat cannot express them."""
    if "role" not in body and isinstance(body.get("type"), str):
        detail = "`role` is required: this looks like an item of the Responses API, which is no chat message."
        raise MessageError("required", detail, f"{attr}.role")


def check_name(body: dict[str, JSON], attr: str) -> None:
    if body.get("name") is not None:
        string(body, "name", attr)


def check_content(body: dict[str, JSON], attr: str) -> None:
    """A string or a list of parts."""
    content = member(body, "content", "a string, or a list of parts", attr)
    if isinstance(content, str):
        return
    if content is None:
        raise invalid("`content` must not be null here: use a string, or a list of parts.", f"{attr}.content")
    check_parts(content, f"{attr}.content")


def check_parts(parts: JSON, attr: str) -> None:
    """Known part types are checked, blocks of Anthropic's refused; others are kept as they came."""
    if not isinstance(parts, list) or not parts:
        raise invalid("`content` must be a string, or a list with at least one part.", attr)
    for i, value in enumerate(parts):
        at = f"{attr}.{i}"
        part = object_(value, "A content part", at)
        kind = string(part, "type", at, blank=False)
        if kind in ("text", "refusal"):
            string(part, kind, at)
        elif kind == "image_url":
            string(child(part, kind, at), "url", f"{at}.{kind}")
        elif kind == "input_audio":
            string(child(part, kind, at), "data", f"{at}.{kind}")
        elif kind == "file":
            child(part, kind, at)
        elif _is_anthropic(part, kind):
            raise other_format(f"A `{kind}` block", "anthropic", "openai", f"{at}.type")


def check_assistant(body: dict[str, JSON], attr: str) -> tuple[Call, ...]:
    """The calls of an assistant message. Its content may be null or missing where it says something else."""
    calls = tuple(_calls(body, attr))
    seen: set[str] = set()
    for i, call in enumerate(calls):
        if call.id in seen:
            raise MessageError(
                "duplicate_call_id", "Each call of a message must have its own id.", f"{attr}.tool_calls.{i}.id"
            )
        seen.add(call.id)
    if body.get("refusal") is not None:
        string(body, "refusal", attr)
    if body.get("audio") is not None:
        child(body, "audio", attr)
    if body.get("content") is not None:
        check_content(body, attr)
    elif not calls and body.get("refusal") is None and body.get("audio") is None:
        raise invalid(
            "An assistant message needs `content` (a string or a list of parts) or `tool_calls`.", f"{attr}.content"
        )
    return calls


def call_id(owner: dict[str, JSON], key: str, attr: str) -> str:
    value = string(owner, key, attr, blank=False)
    if value.startswith(LEGACY_ID):  # else a tool message could answer a function_call, which no provider takes
        raise invalid(f"`{key}` must not begin with `{LEGACY_ID}`.", f"{attr}.{key}")
    return value


def _calls(body: dict[str, JSON], attr: str) -> Iterator[Call]:
    # The providers' own clients write null for what an answer does not have.
    if body.get("tool_calls") is not None:
        given = items(body["tool_calls"], "`tool_calls`", f"{attr}.tool_calls")
        few_calls(len(given), f"{attr}.tool_calls")
        for i, value in enumerate(given):
            at = f"{attr}.tool_calls.{i}"
            call = object_(value, "A tool call", at)
            id_ = call_id(call, "id", at)
            kind = choice(call, "type", CALL_KINDS, at)
            tool = child(call, kind, at)
            string(tool, CALL_KINDS[kind], f"{at}.{kind}")
            yield Call(id_, string(tool, "name", f"{at}.{kind}", blank=False))
    if body.get("function_call") is not None:
        function = child(body, "function_call", attr)
        string(function, "arguments", f"{attr}.function_call")
        name = string(function, "name", f"{attr}.function_call", blank=False)
        yield Call(LEGACY_ID + name, name)


def check_system(system: JSON, attr: str) -> None:
    """None, a string, a list of parts, or a whole system or developer message."""
    if system is None or isinstance(system, str):
        return
    if isinstance(system, dict):
        choice(system, "role", SYSTEM_ROLES, attr)
        check_name(system, attr)
        check_content(system, attr)
    elif isinstance(system, list):
        check_parts(system, attr)
    else:
        raise invalid("`system` must be a string, a list of parts, a system message, or null.", attr)


def check_tools(tools: JSON, attr: str) -> None:
    """None or a list of tools; those that are called by a name must have it."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise invalid("`tools` must be a list of tools, or null.", attr)
    for i, value in enumerate(tools):
        at = f"{attr}.{i}"
        tool = object_(value, "A tool", at)
        if "input_schema" in tool and tool.keys().isdisjoint(CALL_KINDS):
            raise other_format("A tool with `input_schema`", "anthropic", "openai", f"{at}.input_schema")
        kind = string(tool, "type", at, blank=False)
        if kind in CALL_KINDS:
            string(child(tool, kind, at), "name", f"{at}.{kind}", blank=False)
