"""A rendered context of one format as the other has it, where nothing that the model reads is lost.

Turns may be merged or split, as the target wants them. Hints for the provider (`cache_control`) are dropped, and so are
keys that say nothing: null, false, an empty list. Whatever else has no equal is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from compaction_service.engine import jsontext
from compaction_service.engine.formats.anthropic_ids import distinct
from compaction_service.engine.formats.anthropic_turns import OPENING, blocks_of, merge
from compaction_service.engine.projection import Rendered
from compaction_service.engine.types import JSON

_HINTS: Final = frozenset(("cache_control",))
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what both providers take
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}


class Lossy(Exception):  # noqa: N818 - named after what it tells
    """What has no equal in the other format. `where`: `system`, `tools`, `summary`, or `position 3`."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


def convert(rendered: Rendered, target: str) -> Rendered:
    """A context rendered in the other format, as `target` ("openai" or "anthropic") takes it. Lossy if it cannot."""
    return _to_openai(rendered) if target == "openai" else _to_anthropic(rendered)


def convert_tools(tools: JSON, target: str) -> JSON:
    """Tools of the other format as `target` has them: those that are called with a JSON object. Lossy for others."""
    if tools is None:
        return None
    return [_function(tool) if target == "openai" else _custom(tool) for tool in tools]


def _to_anthropic(rendered: Rendered) -> Rendered:
    turns = list(zip(rendered.messages, rendered.origins, strict=True))
    system = None
    if turns and turns[0][0]["role"] == "system":
        message, origin = turns.pop(0)
        where = _where(origin, "system")
        system = _plain(message, where)["content"]
        if not all(block["text"] for block in blocks_of(system)):
            raise Lossy(where, "an empty text")
    messages = [_turn(message, _where(origin)) for message, origin in turns]
    origins = [origin for _, origin in turns]
    merged, places = merge(messages, origins)
    _check_unmoved(messages, origins, merged)
    return Rendered(system, distinct(merged), places)


def _check_unmoved(messages: Sequence[JSON], origins: Sequence[tuple[int, ...]], arranged: Sequence[JSON]) -> None:
    """Merging may neither leave out a block, nor move it, nor show it in another role."""
    shown = _blocks(arranged[1:] if arranged and arranged[0] is OPENING else arranged)
    for message, origin in zip(messages, origins, strict=True):
        for block in _blocks([message]):
            if next(shown, None) != block:
                raise Lossy(_where(origin), "a blank text, or a system message that is not between user and assistant")


def _blocks(messages: Sequence[JSON]) -> Iterator[tuple[str, JSON]]:
    return ((message["role"], block) for message in messages for block in blocks_of(message["content"]))


def _turn(message: JSON, where: str) -> JSON:
    """An OpenAI message as one Anthropic message."""
    role = message["role"]
    if role == "assistant":
        return _assistant_turn(message, where)
    if role == "tool":
        _only(message, ("role", "content", "tool_call_id"), "a tool message", where)
        content = _mapped(message["content"], where)
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [result]}
    if role in ("user", "system"):
        turn = _plain(message, where, images=role == "user")
        if not turn["content"]:
            raise Lossy(where, "an empty message")
        return turn
    raise Lossy(where, f"a message with role {role}")


def _plain(message: JSON, where: str, *, images: bool = False) -> JSON:
    _only(message, ("role", "content"), f"a {message['role']} message", where)
    return {"role": message["role"], "content": _mapped(message["content"], where, images=images)}


def _assistant_turn(message: JSON, where: str) -> JSON:
    _only(message, ("role", "content", "tool_calls"), "an assistant message", where)
    content = _mapped(message.get("content") or "", where)
    calls = [_use(call, where) for call in message.get("tool_calls") or ()]
    if not content and not calls:
        raise Lossy(where, "an empty message")
    return {"role": "assistant", "content": [*blocks_of(content), *calls] if calls else content}


def _use(call: JSON, where: str) -> JSON:
    if call["type"] != "function":
        raise Lossy(where, f"a tool call of type `{call['type']}`")
    _only(call, ("id", "type", "function"), "a tool call", where)
    function = call["function"]
    _only(function, ("name", "arguments"), "a tool call", where)
    try:
        value = jsontext.loads(function["arguments"])
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Lossy(where, "arguments that are not a JSON object")
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": value}


def _to_openai(rendered: Rendered) -> Rendered:
    messages: list[JSON] = []
    origins: list[tuple[int, ...]] = []
    if rendered.system:  # an empty list would be no content
        messages.append({"role": "system", "content": _folded(_mapped(rendered.system, "system"))})
        origins.append(())
    for message, origin in zip(rendered.messages, rendered.origins, strict=True):
        for made in _split(message, _where(origin)):
            messages.append(made)
            origins.append(origin)
    return Rendered(None, messages, origins)


def _split(message: JSON, where: str) -> Iterator[JSON]:
    """An arranged Anthropic message as OpenAI messages: one for each result, and one for the rest."""
    role, content = message["role"], message["content"]
    if role == "assistant":
        yield _assistant_message(blocks_of(content), where)
        return
    if isinstance(content, list):
        results = [block for block in content if block["type"] == "tool_result"]
        yield from (_tool_message(block, where) for block in results)
        content = content[len(results) :]  # they come first
    if content:
        yield {"role": role, "content": _folded(_mapped(content, where, images=role == "user"))}


def _tool_message(block: JSON, where: str) -> JSON:
    _only(block, ("type", "tool_use_id", "content"), "a `tool_result`", where)
    content = _folded(_mapped(block.get("content") or "", where))
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}


def _assistant_message(blocks: Sequence[JSON], where: str) -> JSON:
    said = [block for block in blocks if block["type"] != "tool_use"]
    calls = [_call(block, where) for block in blocks[len(said) :] if block["type"] == "tool_use"]
    content = _folded(_mapped(said, where)) if said else None
    if len(said) + len(calls) < len(blocks):
        raise Lossy(where, "text after a tool call")
    return {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})


def _call(block: JSON, where: str) -> JSON:
    _only(block, ("type", "id", "name", "input"), "a `tool_use`", where)
    function = {"name": block["name"], "arguments": jsontext.dumps(block["input"])}
    return {"id": block["id"], "type": "function", "function": function}


def _mapped(content: JSON, where: str, *, images: bool = False) -> JSON:
    """A content of the other format; a string is the same in both, and so is a text."""
    return content if isinstance(content, str) else [_piece(piece, where, images=images) for piece in content]


def _piece(piece: JSON, where: str, *, images: bool) -> JSON:
    kind = piece["type"]
    if kind == "text":
        _only(piece, ("type", "text"), "a text", where)
        return {"type": "text", "text": piece["text"]}
    if images and kind == "image_url":
        _only(piece, ("type", "image_url"), "an image", where)
        _only(piece["image_url"], ("url",), "an image", where)
        return {"type": "image", "source": _source(piece["image_url"]["url"], where)}
    if images and kind == "image":
        _only(piece, ("type", "source"), "an image", where)
        return {"type": "image_url", "image_url": {"url": _url(piece["source"], where)}}
    raise Lossy(where, f"a part of type `{kind}`")


def _source(url: str, where: str) -> JSON:
    for media_type in _IMAGES:
        label = f"data:{media_type};base64,"
        if url.startswith(label):
            return {"type": "base64", "media_type": media_type, "data": url[len(label) :]}
    if url.startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    raise Lossy(where, "an image that is neither at a URL nor a PNG, JPEG, GIF or WebP in base64")


def _url(source: JSON, where: str) -> str:
    kind = source["type"]
    if kind == "base64" and source["media_type"] in _IMAGES:
        _only(source, ("type", "media_type", "data"), "an image", where)
        return f"data:{source['media_type']};base64,{source['data']}"
    if kind == "url" and source["url"].startswith(("https://", "http://")):
        _only(source, ("type", "url"), "an image", where)
        url: str = source["url"]
        return url
    raise Lossy(where, f"an image whose source is a `{kind}` that the format does not take")


def _folded(content: JSON) -> JSON:
    """A single text as a string: many servers that speak OpenAI's format take nothing else."""
    single = isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text"
    return content[0]["text"] if single else content


def _function(tool: JSON) -> JSON:
    kind = tool.get("type") or "custom"
    if kind != "custom":
        raise Lossy("tools", f"a tool of type `{kind}`")
    _only(tool, ("type", "name", "description", "input_schema"), "a tool", "tools")
    return {"type": "function", "function": _described(tool, "parameters", tool["input_schema"])}


def _custom(tool: JSON) -> JSON:
    if tool["type"] != "function":
        raise Lossy("tools", f"a tool of type `{tool['type']}`")
    function = tool["function"]
    _only(tool, ("type", "function"), "a tool", "tools")
    _only(function, ("name", "description", "parameters"), "a tool", "tools")
    schema = function.get("parameters")
    if schema is None:
        schema = _NO_PARAMETERS
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Lossy("tools", "parameters whose type is not `object`")
    return _described(function, "input_schema", schema)


def _described(tool: JSON, key: str, schema: JSON) -> JSON:
    described = {} if tool.get("description") is None else {"description": tool["description"]}
    return {"name": tool["name"], **described, key: schema}


def _only(value: JSON, keys: Collection[str], what: str, where: str) -> None:
    """Lossy where it has another key that says something."""
    for key, said in value.items():
        if key not in keys and key not in _HINTS and not (said is None or said is False or said == []):
            raise Lossy(where, f"`{key}` of {what}")


def _where(origin: tuple[int, ...], otherwise: str = "summary") -> str:
    if not origin:
        return otherwise
    # Turns that were merged are one message here.
    return f"position {origin[0]}" if len(origin) == 1 else f"positions {', '.join(map(str, origin))}"
