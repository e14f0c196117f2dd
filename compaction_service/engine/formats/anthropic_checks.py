"""What Anthropic's messages API takes as a message, a system prompt and tools. Keys it does not name are let through,
and so are blocks of an unknown type: the provider adds some with every tool it runs itself."""

from __future__ import annotations

from compaction_service.engine.formats.checks import (
    child,
    choice,
    few_calls,
    invalid,
    member,
    object_,
    other_format,
    string,
)
from compaction_service.engine.types import JSON, Call, MessageError

ROLES = ("user", "assistant", "system")  # system: an instruction in the middle of a conversation
THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")  # of the provider's own tools; it answers them itself

# The blocks that only one role may have; those of the provider's own tools are not looked at.
_OWNERS = {"tool_use": "assistant", "tool_result": "user", **dict.fromkeys(THINKING, "assistant")}
# What only OpenAI's chat messages have. A result or call under these names would be left out, the rest be shown.
_OPENAI_ROLES = ("tool", "function", "developer")
_OPENAI_CALLS = ("tool_calls", "function_call")
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "refusal", "file"})
_TEXTS = {"text": ("text",), "thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
_SOURCES = {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",), "text": ("data",)}


def check_role(body: dict[str, JSON], attr: str) -> str:
    """The role; refuses a message that is one of OpenAI's by its role or by how it makes calls."""
    if (role := body.get("role")) in _OPENAI_ROLES:
        raise other_format(f"A message with role {role}", "openai", "anthropic", f"{attr}.role")
    for key in _OPENAI_CALLS:
        if body.get(key):  # the providers' clients write null or nothing for none
            raise other_format(f"A message with `{key}`", "openai", "anthropic", f"{attr}.{key}")
    return choice(body, "role", ROLES, attr)


def check_content(body: dict[str, JSON], attr: str) -> JSON:
    """The content of a message: a string or a list of blocks. Both may be empty: such a message is not shown."""
    content = member(body, "content", "a string, or a list of blocks", attr)
    if not isinstance(content, str):
        check_blocks(content, f"{attr}.content", body["role"])
    return content


def check_blocks(blocks: JSON, attr: str, role: str | None = None) -> None:
    """Known types of blocks are checked, and that this role may have them (None: inside another block)."""
    if not isinstance(blocks, list):
        raise invalid("`content` must be a string, or a list of blocks.", attr)
    for i, value in enumerate(blocks):
        at = f"{attr}.{i}"
        block = object_(value, "A content block", at)
        kind = string(block, "type", at, blank=False)
        _check_kind(kind, role, f"{at}.type")
        for key in _TEXTS.get(kind, ()):
            string(block, key, at)
        if kind in ("image", "document"):
            _check_source(child(block, "source", at), f"{at}.source")
        elif kind == "tool_use":
            for key in ("id", "name"):
                string(block, key, at, blank=False)
            child(block, "input", at)
        elif kind == "tool_result":
            string(block, "tool_use_id", at, blank=False)
            if not isinstance(block.get("content", ""), str):
                check_blocks(block["content"], f"{at}.content")


def _check_kind(kind: str, role: str | None, attr: str) -> None:
    if kind in _OPENAI_PARTS:
        raise other_format(f"A part of type `{kind}`", "openai", "anthropic", attr)
    owner = _OWNERS.get(kind, role)
    if owner != role:
        raise invalid(f"A `{kind}` block belongs into the content of a message with role {owner}.", attr)


def _check_source(source: dict[str, JSON], attr: str) -> None:
    for key in _SOURCES.get(string(source, "type", attr, blank=False), ()):
        string(source, key, attr)


def calls(blocks: list[JSON], attr: str) -> tuple[Call, ...]:
    """The calls among checked blocks. The provider's own tools make none: it answers them itself."""
    found: dict[str, Call] = {}
    for i, block in enumerate(blocks):
        if block["type"] != "tool_use":
            continue
        if block["id"] in found:
            raise MessageError(
                "duplicate_call_id", "Each call of a message must have its own id.", f"{attr}.content.{i}.id"
            )
        found[block["id"]] = Call(block["id"], block["name"])
    few_calls(len(found), f"{attr}.content")
    return tuple(found.values())


def check_system(system: JSON, attr: str) -> None:
    """None, a string, or a list of text blocks."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise invalid("`system` must be a string, a list of text blocks, or null.", attr)
    for i, value in enumerate(system):
        at = f"{attr}.{i}"
        block = object_(value, "A block of `system`", at)
        choice(block, "type", ("text",), at)
        string(block, "text", at, blank=False)


def check_tools(tools: JSON, attr: str) -> None:
    """None or a list of tools: custom ones with `name` and `input_schema`, the provider's own by their `type`."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise invalid("`tools` must be a list of tools, or null.", attr)
    for i, value in enumerate(tools):
        at = f"{attr}.{i}"
        tool = object_(value, "A tool", at)
        if tool.get("type") == "function":
            raise other_format("A tool of type `function`", "openai", "anthropic", f"{at}.type")
        if tool.get("type") is not None and string(tool, "type", at, blank=False) != "custom":
            continue
        string(tool, "name", at, blank=False)
        child(tool, "input_schema", at)
