"""OpenAI chat messages. A legacy function_call is a call whose id is made of its function's name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from compaction_service.engine.formats.base import DELETED, Part, placeholder, summary_text
from compaction_service.engine.formats.checks import choice, object_, string
from compaction_service.engine.formats.openai_checks import (
    CALL_KINDS,
    LEGACY_ID,
    ROLES,
    SYSTEM_ROLES,
    call_id,
    check_assistant,
    check_chat,
    check_content,
    check_name,
    check_system,
    check_tools,
)
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

name: Final = "openai"


def read(message: JSON, attr: str) -> Facts:
    """What one message means. MessageError, naming the place below `attr`, if the chat API would refuse it."""
    body = object_(message, "A message", attr)
    check_chat(body, attr)
    role = choice(body, "role", ROLES, attr)
    check_name(body, attr)
    if role == "assistant":
        return Facts(role, calls=check_assistant(body, attr))
    if role == "function":
        id_ = LEGACY_ID + string(body, "name", attr, blank=False)
        if body.get("content", "") is not None:  # a function's result may be null, but not missing
            check_content(body, attr)
        return _result(body, id_, "name")
    if role == "tool":
        id_ = call_id(body, "tool_call_id", attr)
        check_content(body, attr)
        return _result(body, id_, "tool_call_id")
    check_content(body, attr)
    return Facts(role, request=role == "user")


def leading_system(message: JSON) -> JSON | None:
    """The content of a plain system message; a developer message, or one with more keys, as it came; else None."""
    if message["role"] not in SYSTEM_ROLES:
        return None
    return message["content"] if message.keys() == {"role", "content"} and message["role"] == "system" else message


def system_messages(system: JSON) -> list[JSON]:
    """The opening of a context: `leading_system` backwards."""
    if system is None:
        return []
    return [system if isinstance(system, dict) else {"role": "system", "content": system}]


def opening(message: JSON) -> JSON | None:  # noqa: ARG001 - any message may be the first
    """None: a conversation may begin with any message."""
    return None


def arrange(
    messages: Sequence[JSON],
    origins: Sequence[tuple[int, ...]],
    beside: Sequence[JSON] = (),  # noqa: ARG001
) -> tuple[list[JSON], list[tuple[int, ...]]]:
    """As they are: roles need not alternate."""
    return list(messages), list(origins)


def tool_names(tools: JSON) -> tuple[str, ...]:
    """The names of function and custom tools; the provider's own tools have none."""
    return tuple(tool[tool["type"]]["name"] for tool in tools or () if tool["type"] in CALL_KINDS)


def mask(message: JSON, indices: Collection[int], names: Sequence[str | None]) -> JSON:
    """A result has one answer, so the only index is 0."""
    return shorten(message, 0, placeholder(names[0])) if indices else message


def shorten(message: JSON, index: int, text: str) -> JSON:  # noqa: ARG001 - a result has one answer
    """The result with this text as its content."""
    return {**message, "content": text}


def shorten_text(message: JSON, text: str) -> JSON:
    """The text comes first, then what else the content has. What was said as sound is among the text."""
    if audio := message.get("audio"):
        message = {**message, "audio": {key: value for key, value in audio.items() if key != "transcript"}}
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "content": text}
    others = [part for part in content if part["type"] == "refusal" or not isinstance(part.get("text"), str)]
    return {**message, "content": [{"type": "text", "text": text}, *others]}


def synthetic_result(call: Call, text: str) -> JSON:
    """A tool message, or for a legacy function_call a function message."""
    if call.id.startswith(LEGACY_ID):
        return {"role": "function", "name": call.name, "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def summary_message(text: str, prefix: str = "") -> JSON:
    """A user message, the summary clearly delimited."""
    return {"role": "user", "content": summary_text(text, prefix)}


def binds_thinking(model: str) -> bool:  # noqa: ARG001 - whatever the model
    """No: chat messages hold no signed thinking."""
    return False


def without_thinking(message: JSON) -> JSON:
    """The same message: see `binds_thinking`."""
    return message


def deleted_stub(message: JSON) -> JSON:
    """Only what makes the exchange valid is left: role, ids and names of tools."""
    stub: dict[str, JSON] = {"role": message["role"], "content": DELETED}
    if message["role"] == "tool":
        stub["tool_call_id"] = message["tool_call_id"]
    elif message["role"] == "function":
        stub["name"] = message["name"]
    elif message["role"] == "assistant":
        if message.get("tool_calls"):
            stub["tool_calls"] = [_emptied(call) for call in message["tool_calls"]]
        if message.get("function_call"):
            stub["function_call"] = {"name": message["function_call"]["name"], "arguments": "{}"}
    return stub


def parts(message: JSON) -> tuple[Part, ...]:
    """Reasoning, content, refusal, calls. A result is one part, then its media."""
    role = message["role"]
    content = tuple(_content_parts(message.get("content")))
    if role in ("tool", "function"):
        id_ = message["tool_call_id"] if role == "tool" else LEGACY_ID + message["name"]
        return (
            Part("result", _text(content), message.get("name"), id_),
            *(part for part in content if part.kind == "media"),
        )
    return content if role != "assistant" else tuple(_assistant_parts(message, content))


def _result(body: dict[str, JSON], id_: str, path: str) -> Facts:
    chars = len(_text(_content_parts(body["content"])))
    return Facts(body["role"], answers=(Answer(id_, chars=chars, path=path),))


def _assistant_parts(message: JSON, content: tuple[Part, ...]) -> Iterator[Part]:
    reasoning = message.get("reasoning_content")  # not OpenAI's own, but usual with servers that speak this format
    if isinstance(reasoning, str) and reasoning:
        yield Part("thinking", reasoning)
    yield from content
    if message.get("refusal"):
        yield Part("refusal", message["refusal"])
    if message.get("audio"):
        yield Part("media", "audio")
        if isinstance(message["audio"].get("transcript"), str):
            yield Part("text", message["audio"]["transcript"])
    for call in message.get("tool_calls") or ():
        tool = call[call["type"]]
        yield Part("call", tool[CALL_KINDS[call["type"]]], tool["name"], call["id"])
    if function := message.get("function_call"):
        yield Part("call", function["arguments"], function["name"], LEGACY_ID + function["name"])


def _content_parts(content: JSON) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Part("text", content)
        return
    for part in content or ():
        kind = part["type"]
        if kind == "refusal":
            yield Part("refusal", part["refusal"])
        elif isinstance(part.get("text"), str):
            yield Part("text", part["text"])
        elif kind == "file":
            filename = part["file"].get("filename")
            yield Part("media", f"file {filename}" if isinstance(filename, str) else "file")
        else:
            yield Part("media", {"image_url": "image", "input_audio": "audio"}.get(kind, kind))


def _emptied(call: JSON) -> JSON:
    kind = call["type"]
    return {"id": call["id"], "type": kind, kind: {"name": call[kind]["name"], CALL_KINDS[kind]: "{}"}}


def _text(content: Iterable[Part]) -> str:
    return "\n".join(part.text for part in content if part.kind != "media")
