"""What is inside a message: parts and blocks of both formats, counted by their type (semantics 3).

Works through a stack instead of calling itself, so that no nesting is too deep. Never raises on any JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compaction_service.tokens import media
from compaction_service.tokens.families import Family

Texts = list[str]

# Data a provider does not read as text, whatever the part: keys that hold it, and what it looks like under any key.
_OPAQUE = {
    "data",
    "signature",
    "encrypted_content",
    "encrypted_index",
    "thought_signature",
    "file_data",
    "cache_control",
}
_BASE64 = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/_-]{200,}={0,2}")


def leaves(value: Any, *, opaque: bool = True) -> str:
    """Every key, text and number of a JSON value, a line each; without data that no provider reads as text, unless
    `opaque` says that there is none (the input of a call is read as it is).
    """
    found: Texts = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            for key, inner in item.items():
                if not (opaque and key in _OPAQUE):
                    found.append(str(key))
                    todo.append(inner)
        elif isinstance(item, (list, tuple)):
            todo.extend(item)
        elif isinstance(item, str):
            if not (opaque and _BASE64.fullmatch(item)):
                found.append(item)
        elif item is not None:
            found.append(str(item).lower())
    return "\n".join(found)


def content(value: Any, family: Family) -> tuple[Texts, float]:
    """A message's content, of either format: its texts, and the raw tokens of what is not counted as text."""
    texts: Texts = []
    other = 0.0
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            kind = part.get("type")
            if kind == "text":  # nearly every part
                todo.append(part.get("text"))
            elif isinstance(kind, str) and kind in _KINDS:
                other += _KINDS[kind](part, texts, todo, family)
            else:
                texts.append(leaves(part))
        elif isinstance(part, str):
            texts.append(part)
        elif isinstance(part, (list, tuple)):
            todo.extend(part)
        elif part is not None:
            texts.append(str(part))
    return texts, other


# A kind of part appends its texts, leaves inner content to do, and returns the raw tokens of all else.
_Kind = Callable[[dict[str, Any], Texts, list[Any], Family], float]


def _reads(*keys: str) -> _Kind:
    """A part that is nothing but the texts or inner content under these keys."""

    def kind(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
        todo.extend(part.get(key) for key in keys)
        return 0

    return kind


def _opaque(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    """Encrypted thinking: what it decrypts to costs about a token per eight characters of it."""
    data = part.get("data")
    return len(data) / 8 / family.factor if isinstance(data, str) else 0


def _call(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    texts += [str(part.get("name") or ""), leaves(part.get("input"), opaque=False)]
    return family.overhead.call


def _found(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    """A page a server-side search found: the client holds it encrypted, the model reads its text.

    Searches were charged about a token per two characters of the encrypted form.
    """
    texts.append(leaves(part))
    data = part.get("encrypted_content")
    return len(data) / 2 / family.factor if isinstance(data, str) else 0


def _result(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    todo.append(part.get("content"))
    return family.overhead.result


def _picture(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    source, link = part.get("source"), part.get("image_url")
    if isinstance(source, dict):  # Anthropic
        return media.picture(family.media, _text(source.get("data"))) / family.factor
    detail = link.get("detail") if isinstance(link, dict) else part.get("detail")
    return (
        media.picture(family.media, media.data_of(link.get("url") if isinstance(link, dict) else link), detail)
        / family.factor
    )


def _document(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:
    """A document of either format; plain text and inner blocks are counted as what they are."""
    todo.extend((part.get("title"), part.get("context")))
    source = part.get("source")
    if not isinstance(source, dict):  # OpenAI
        inner = part.get("file")
        source = inner if isinstance(inner, dict) else part
        todo.append(source.get("filename"))
    if source.get("type") == "content":
        todo.append(source.get("content"))
        return 0
    data = _text(source.get("data") or source.get("file_data"))
    if source.get("type") == "text":
        texts.append(data or "")
        return 0
    if data and _text(source.get("media_type") or data[5:]).startswith("text/"):
        texts.append(media.decoded_text(data))
        return 0
    return media.document(family.media, data or None) / family.factor


def _audio(part: dict[str, Any], texts: Texts, todo: list[Any], family: Family) -> float:  # noqa: ARG001
    inner = part.get("input_audio")
    return media.audio(family.media, _text(inner.get("data")) if isinstance(inner, dict) else None) / family.factor


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_KINDS: dict[str, _Kind] = {
    "input_text": _reads("text"),
    "output_text": _reads("text"),
    "refusal": _reads("refusal"),
    "thinking": _reads("thinking"),
    "redacted_thinking": _opaque,
    "compaction": _reads("content"),
    "image": _picture,
    "image_url": _picture,
    "input_image": _picture,
    "document": _document,
    "file": _document,
    "input_file": _document,
    "input_audio": _audio,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "tool_result": _result,
    "web_fetch_tool_result": _result,
    "web_search_tool_result": _result,
    "web_fetch_result": _reads("url", "content"),
    "web_search_result": _found,
    "mcp_tool_result": _result,
}
