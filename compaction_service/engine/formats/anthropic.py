"""Anthropic messages: content is a string or blocks, a tool's result is a block of a user message, and the system
prompt goes beside the messages. How stored messages become turns is told in `anthropic_turns`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from compaction_service.engine import jsontext
from compaction_service.engine.formats.anthropic_checks import (
    SERVER_CALLS,
    THINKING,
    calls,
    check_content,
    check_role,
    check_system,
    check_tools,
)
from compaction_service.engine.formats.anthropic_thinking import binds_thinking, without_thinking
from compaction_service.engine.formats.anthropic_turns import OPENING, arrange, blocks_of, shown
from compaction_service.engine.formats.base import DELETED, Part, placeholder, summary_text
from compaction_service.engine.formats.checks import object_
from compaction_service.engine.types import JSON, Answer, Call, Facts

__all__ = [
    "arrange",
    "binds_thinking",
    "check_system",
    "check_tools",
    "deleted_stub",
    "leading_system",
    "mask",
    "name",
    "opening",
    "parts",
    "placeholder",
    "read",
    "shorten",
    "shorten_text",
    "summary_message",
    "synthetic_result",
    "system_messages",
    "tool_names",
    "without_thinking",
]

name: Final = "anthropic"

_MEDIA = ("image", "document")
# What a block holds beside its text, under any key: no transcript shows it.
_UNREAD = frozenset(
    ("type", "id", "tool_use_id", "file_id", "media_type", "signature", "cache_control", "citations",
     "encrypted_content", "encrypted_index", "encrypted_stdout", "is_error", "caller", "page_age", "retrieved_at")
)  # fmt: skip


def read(message: JSON, attr: str) -> Facts:
    """What one message means. MessageError, naming the place below `attr`, if the API would refuse it.

    A user message that shows anything besides results is a request as well (semantics 1).
    """
    body = object_(message, "A message", attr)
    role = check_role(body, attr)
    blocks = blocks_of(check_content(body, attr))
    answers = tuple(
        Answer(block["tool_use_id"], chars=len(_result_text(block)), path=f"content.{i}.tool_use_id")
        for i, block in enumerate(blocks)
        if block["type"] == "tool_result"
    )
    asks = role == "user" and any(block["type"] != "tool_result" for block in blocks_of(shown(body)))
    return Facts(role, calls(blocks, attr), answers, request=asks)


def leading_system(message: JSON) -> JSON | None:  # noqa: ARG001 - there is none in this format
    """None: the system prompt is never one of the messages."""
    return None


def system_messages(system: JSON) -> list[JSON]:  # noqa: ARG001 - there are none in this format
    """None: it goes beside the messages."""
    return []


def opening(message: JSON) -> JSON | None:
    """A user message before a conversation that the assistant begins."""
    return None if message["role"] == "user" and shown(message) else OPENING


def tool_names(tools: JSON) -> tuple[str, ...]:
    """The names of custom tools and of the provider's own that have one."""
    return tuple(tool["name"] for tool in tools or () if isinstance(tool.get("name"), str))


def mask(message: JSON, indices: Collection[int], names: Sequence[str | None]) -> JSON:
    """Each masked result keeps its id, `is_error` and the shape of its content."""
    return _with_results(message, {index: placeholder(names[index]) for index in indices})


def shorten(message: JSON, index: int, text: str) -> JSON:
    """The result with this text as its content, in the shape it had."""
    return _with_results(message, {index: text})


def shorten_text(message: JSON, text: str) -> JSON:
    """The text stands where the first one stood: thinking stays before it, calls and media where they are."""
    if isinstance(message["content"], str):
        return {**message, "content": text}
    content: list[JSON] = []
    put = False
    for block in message["content"]:
        if not _plain_text(block):
            content.append(block)
        elif not put:
            content.append({"type": "text", "text": text})
            put = True
    return {**message, "content": content}


def synthetic_result(call: Call, text: str) -> JSON:
    """A user message that holds this result alone."""
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}


def summary_message(text: str, prefix: str = "") -> JSON:
    """A user message, the summary clearly delimited. A block, so that what is merged with it leaves it as it is."""
    return {"role": "user", "content": [{"type": "text", "text": summary_text(text, prefix)}]}


def deleted_stub(message: JSON) -> JSON:
    """Only what makes the exchange valid is left: role, ids and names of tools."""
    blocks = blocks_of(message["content"])
    results = [_emptied(block) for block in blocks if block["type"] == "tool_result"]
    called = [_emptied(block) for block in blocks if block["type"] == "tool_use"]
    return {"role": message["role"], "content": results or [{"type": "text", "text": DELETED}, *called]}


def parts(message: JSON) -> tuple[Part, ...]:
    """Its blocks in order. A result is one part, then its media.

    The provider's own tools are told as media and results: they are no calls of the agent's.
    """
    return tuple(part for block in blocks_of(message["content"]) for part in _parts(block))


def _parts(block: JSON) -> Iterator[Part]:
    kind = block["type"]
    if _plain_text(block):
        if text := block["text" if kind == "text" else "content"]:
            yield Part("text", text)
    elif kind == "thinking":
        yield Part("thinking", block["thinking"])
    elif kind == "tool_use":
        yield Part("call", jsontext.dumps(block["input"]), block["name"], block["id"])
    elif kind == "tool_result":
        yield Part("result", _result_text(block), id=block["tool_use_id"])
        if isinstance(block.get("content"), list):
            yield from (Part("media", _medium(inner)) for inner in block["content"] if inner["type"] in _MEDIA)
    elif kind not in THINKING:
        yield _other_part(block, kind)


def _other_part(block: JSON, kind: str) -> Part:
    if kind in SERVER_CALLS:
        return Part("media", f"{_name(block)} {_readable(block.get('input'))}")
    if kind.endswith("_tool_result"):
        return Part("result", _readable(block.get("content")), kind.removesuffix("_tool_result"))
    if kind == "search_result" or (kind == "document" and block["source"]["type"] in ("text", "content")):
        return Part("result", _readable(block), kind)
    return Part("media", _medium(block))


def _plain_text(block: JSON) -> bool:
    """Text, or the provider's own summary of what came before."""
    return block["type"] == "text" or (block["type"] == "compaction" and isinstance(block.get("content"), str))


def _result_text(block: JSON) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(_inner_text(inner) for inner in content if inner["type"] not in _MEDIA)


def _inner_text(block: JSON) -> str:
    text: str = block["text"] if block["type"] == "text" else _readable(block)
    return text


def _readable(value: JSON) -> str:
    """The texts and numbers in a block of a kind that need not be known, a line each."""
    found: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict) and item.get("type") != "base64":
            todo += [inner for key, inner in reversed(item.items()) if key not in _UNREAD]
        elif isinstance(item, list):
            todo += reversed(item)
        elif isinstance(item, (str, int, float)) and item != "":
            found.append(str(item))
    return "\n".join(found)


def _medium(block: JSON) -> str:
    title = block.get("title")
    return f"{block['type']} {title}" if isinstance(title, str) and title else str(block["type"])


def _name(block: JSON) -> str:
    tool = block.get("name")
    return tool if isinstance(tool, str) else str(block["type"])


def _with_results(message: JSON, texts: dict[int, str]) -> JSON:
    """The message with these texts for its results, by their number."""
    if not texts:
        return message
    content: list[JSON] = []
    number = 0
    for block in message["content"]:
        if block["type"] != "tool_result":
            content.append(block)
            continue
        text = texts.get(number)
        content.append(block if text is None else {**block, "content": _shaped(block, text)})
        number += 1
    return {**message, "content": content}


def _shaped(block: JSON, text: str) -> JSON:
    return [{"type": "text", "text": text}] if isinstance(block.get("content"), list) else text


def _emptied(block: JSON) -> JSON:
    if block["type"] == "tool_use":
        return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
    return {"type": "tool_result", "tool_use_id": block["tool_use_id"], "content": DELETED}
