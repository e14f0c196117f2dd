"""What must hold of every context an agent is given, checked from outside, on the answer of the API alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

JSON = dict[str, Any]


def context_problems(context: Mapping[str, Any], request: JSON | None, fmt: str = "openai") -> list[str]:
    """What is wrong with a context; empty when it can be sent (semantics 1, invariants 2 and 3).

    `request`: the user request that must be in it, as it was appended; None where the policy lets it go.
    """
    problems = []
    meter, messages = context["meter"], context["messages"]
    if not context["fits"] or meter["tokens"] > meter["window"]:
        problems.append(f"does not fit: {meter['tokens']} tokens in a window of {meter['window']}")
    if context["degraded"]:
        problems.append("degraded: made to fit without a summary")
    if request is not None and not _said(request, messages):
        problems.append("the last user request is missing")
    return problems + (call_problems(messages) if fmt == "openai" else turn_problems(messages))


def asks(message: JSON) -> bool:
    """Whether it is a user request: the user says something besides results of tools (semantics 1)."""
    return message["role"] == "user" and any(block["type"] != "tool_result" for block in blocks(message))


def call_problems(messages: Sequence[JSON]) -> list[str]:
    """OpenAI: calls and results that do not go together: every call is answered, at once, and nothing else is."""
    problems: list[str] = []
    waiting: dict[str, None] = {}
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            answered = message.get("tool_call_id")
            if answered in waiting:
                del waiting[answered]
            else:
                problems.append(f"message {number}: a result without its call ({answered})")
            continue
        problems += [f"message {number}: comes before the result of {call}" for call in waiting]
        waiting = {call["id"]: None for call in message.get("tool_calls") or []}
    return problems + [f"at the end: no result of {call}" for call in waiting]


def turn_problems(messages: Sequence[JSON]) -> list[str]:
    """Anthropic: turns that do not alternate or are empty, calls that the next message does not answer first of all."""
    problems: list[str] = []
    waiting: list[str] = []
    before = "assistant"
    for number, message in enumerate(messages):
        problems += [f"message {number}: {problem}" for problem in _turn(message, before, waiting)]
        before = message["role"]
        waiting = [block["id"] for block in blocks(message) if block["type"] == "tool_use"]
    return problems + [f"at the end: no result of {call}" for call in waiting]


def blocks(message: JSON) -> Sequence[JSON]:
    """The content as a list, whatever its form."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or ()


def _turn(message: JSON, before: str, waiting: Sequence[str]) -> Iterator[str]:
    if not message["content"]:
        yield "is empty"
    if message["role"] == before:
        yield f"follows another of {before}"
    kinds = [block["type"] for block in blocks(message)]
    results = [block["tool_use_id"] for block in blocks(message) if block["type"] == "tool_result"]
    if "tool_result" in kinds[len(results) :]:
        yield "results after other content"
    yield from (f"a result without its call ({call})" for call in results if call not in waiting)
    yield from (f"comes before the result of {call}" for call in waiting if call not in results)


def _said(request: JSON, messages: Sequence[JSON]) -> bool:
    """The request is there, whole, or block by block in a turn it was merged into."""
    if request in messages:
        return True
    shown = [block for message in messages if message["role"] == "user" for block in blocks(message)]
    wanted = [block for block in blocks(request) if block["type"] != "tool_result" and not _blank(block)]
    return all(block in shown for block in wanted)


def _blank(block: JSON) -> bool:
    """Blank text, which Anthropic's API refuses: it is not shown."""
    return block["type"] == "text" and not block["text"].strip()
