"""What must hold of every context an agent is given, checked from outside, on the answer of the API alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

JSON = dict[str, Any]


def context_problems(context: Mapping[str, Any], request: JSON | None) -> list[str]:
    """What is wrong with a context in OpenAI format; empty when it can be sent (semantics 1, invariants 2 and 3).

    `request`: the user request that must be in it, as it was appended; None where the policy lets it go.
    """
    problems = []
    meter, messages = context["meter"], context["messages"]
    if not context["fits"] or meter["tokens"] > meter["window"]:
        problems.append(f"does not fit: {meter['tokens']} tokens in a window of {meter['window']}")
    if context["degraded"]:
        problems.append("degraded: made to fit without a summary")
    if request is not None and request not in messages:
        problems.append("the last user request is missing")
    return problems + call_problems(messages)


def call_problems(messages: Sequence[JSON]) -> list[str]:
    """Calls and results that do not go together: every call is answered, at once, and nothing else is."""
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
