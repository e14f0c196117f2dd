"""Messages of the conversations that the presets are proven with."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]


def user(number: int, times: int = 12) -> Message:
    text = f"Request {number}: mend src/module_{number}.py, it fails with error E{number}. "
    return {"role": "user", "content": text * times}


def assistant(number: int, times: int = 12) -> Message:
    text = f"I mended src/module_{number}.py: the cause of E{number} was a missing value. "
    return {"role": "assistant", "content": text * times}


def turns(*numbers: int, times: int = 12) -> list[Message]:
    """A request and its answer for each number; some 40 tokens for each of `times`."""
    return [message for number in numbers for message in (user(number, times), assistant(number, times))]


def call(number: int, tool: str = "bash") -> Message:
    made = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": tool, "arguments": f'{{"path": "src/module_{number}.py"}}'},
    }
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(number: int, times: int = 12) -> Message:
    text = f"line {number} of the output: E{number} at src/module_{number}.py\n"
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text * times}


def asked(call: Any) -> str:
    """All text that a recorded call sent to the model."""
    return "\n".join(message["content"] for message in call["body"]["messages"])


def chars(message: Message) -> int:
    """Length of the message as compact JSON with nothing escaped that need not be."""
    return len(json.dumps(message, ensure_ascii=False, separators=(",", ":")))
