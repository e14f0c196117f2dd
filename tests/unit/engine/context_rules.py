"""What OpenAI's chat completions accept as `messages`, written from the provider's rules and from nothing else.

Rules: known roles; content present where the role needs it; `tool_calls` not empty, with JSON arguments; every tool
message answers a call of the assistant message its run follows; every call is answered before any other message, but
for calls open at the very end.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

ROLES = {"system", "developer", "user", "assistant", "tool"}


def openai_violations(messages: list[dict[str, Any]]) -> list[str]:
    """Every rule the messages break, each with its place; empty: the provider takes them."""
    found = [f"{i}: {problem}" for i, message in enumerate(messages) for problem in _shape(message)]
    pending: Counter[str] = Counter()  # calls of the assistant message before this run of tool messages
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            identifier = message["tool_call_id"]
            if pending[identifier] == 0:
                found.append(f"{i}: result {identifier!r} without its call")
            pending[identifier] -= 1
            continue
        if missing := sorted(pending.elements()):
            found.append(f"{i}: calls {missing} not answered before this message")
        pending = Counter(call["id"] for call in message.get("tool_calls") or ())
    return found


def _shape(message: dict[str, Any]) -> list[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        return [f"unknown role {role!r}"]
    problems = []
    if role == "assistant":
        if "tool_calls" in message and not message["tool_calls"]:
            problems.append("tool_calls is empty")
        if content is None and not message.get("tool_calls") and not message.get("refusal"):
            problems.append("assistant without content, calls and refusal")
        problems += [f"arguments of {call['id']!r}" for call in message.get("tool_calls") or () if not _is_json(call)]
    elif not isinstance(content, str | list):
        problems.append(f"{role} without content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        problems.append("tool without tool_call_id")
    return problems


def _is_json(call: dict[str, Any]) -> bool:
    try:
        json.loads(call["function"]["arguments"])
    except ValueError:
        return False
    return True
