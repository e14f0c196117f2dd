"""What Anthropic's messages API accepts as `system` and `messages`, written from the provider's rules and from nothing
else.

Rules: only roles user, assistant, system, only keys role and content; the first message is the user's; no two in a row
have the same role; a system message stands right after a user turn (or an assistant turn that ends with a server tool)
and before an assistant turn or the end. Content is not empty; no text is empty, and none is blank
unless another text of its message is not. A `tool_use` is answered in the next message, a user message that begins with
the results, each of a call of the message before and each once; calls at the very end may be open. The id of a call is
made of letters, digits, _ and -, and no other call of the request has it. A result that is an error says something.
Thinking is the assistant's, signed, and never the last block of its message.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

Blocks = list[dict[str, Any]]


def anthropic_violations(messages: list[dict[str, Any]], system: Any = None) -> list[str]:
    """Every rule the context breaks, each with its place; empty: the provider takes it."""
    found = [f"system: {problem}" for problem in _system(system)]
    for i, message in enumerate(messages):
        found += [f"{i}: {problem}" for problem in _shape(message)]
    found += _order(messages)
    found += _pairs(messages)
    return found


def blocks(message: dict[str, Any]) -> Blocks:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _system(system: Any) -> list[str]:
    if system is None or isinstance(system, str):
        return []
    if not isinstance(system, list):
        return ["neither a string nor blocks"]
    return ["not a text with something in it" for b in system if b.get("type") != "text" or not b.get("text")]


def _shape(message: dict[str, Any]) -> list[str]:
    role = message.get("role")
    if set(message) != {"role", "content"} or role not in ("user", "assistant", "system"):
        return [f"not a message: {sorted(message)} {role!r}"]
    if not isinstance(message["content"], str | list) or not message["content"]:
        return ["no content"]
    problems = [problem for block in blocks(message) for problem in _block(block, role)]
    if blocks(message)[-1]["type"] in ("thinking", "redacted_thinking"):
        problems.append("ends with thinking")
    return _texts(blocks(message)) + problems


def _block(block: dict[str, Any], role: str) -> list[str]:
    kind, content = block["type"], block.get("content") or ""
    found = []
    if role != {"tool_use": "assistant", "thinking": "assistant", "tool_result": "user"}.get(kind, role):
        found.append(f"{kind} in a message of {role}")
    if kind == "thinking" and not isinstance(block.get("signature"), str):
        found.append("thinking that is not signed")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        found.append("input is no object")
    if kind == "tool_result":
        found += _texts(content) if isinstance(content, list) else []
        if block.get("is_error") and not content:
            found.append("an error that says nothing")
    return found


def _texts(content: Blocks) -> list[str]:
    texts = [block["text"] for block in content if block["type"] == "text"]
    if "" in texts:
        return ["an empty text"]
    return ["only blank texts"] if texts and not any(text.strip() for text in texts) else []


def _order(messages: list[dict[str, Any]]) -> list[str]:
    roles = [message["role"] for message in messages]
    found = [f"0: begins with {role}" for role in roles[:1] if role != "user"]
    pairs = enumerate(pairwise(roles), 1)
    found += [f"{i}: two messages of {role}" for i, (last, role) in pairs if last == role]
    for i, role in enumerate(roles):
        if role != "system" or i == 0:
            continue
        server_tool = blocks(messages[i - 1])[-1]["type"]
        after = roles[i - 1] == "user" or server_tool == "server_tool_use" or server_tool.endswith("_tool_result")
        if not after or roles[i + 1 : i + 2] not in ([], ["assistant"]):
            found.append(f"{i}: system out of place")
    return found


def _pairs(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    calls: list[str] = []
    known: Counter[str] = Counter()
    for i, message in enumerate(messages):
        kinds = [block["type"] for block in blocks(message)]
        results = [block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"]
        if "tool_result" in kinds[len(results) :]:
            found.append(f"{i}: results after other blocks")
        found += [f"{i}: more than one result of {id_!r}" for id_, count in Counter(results).items() if count > 1]
        found += [f"{i}: result {id_!r} without its call" for id_ in results if id_ not in calls]
        open_ = sorted(set(calls) - set(results))
        at_the_end = i == len(messages) - 1 and len(results) == len(kinds)
        if open_ and not at_the_end:
            found.append(f"{i}: calls {open_} not answered")
        calls = [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
        known.update(calls)
        found += [f"{i}: call id {id_!r} is not the only one" for id_ in calls if known[id_] > 1]
        found += [f"{i}: call id {id_!r}" for id_ in calls if not re.fullmatch(r"[a-zA-Z0-9_-]+", id_)]
    return found
