"""What a model can be told to do. A behaviour is a name, with an argument after a colon where it takes one.

Good answers    honest, fixed_tokens:N, long_then_short (over the asked length first, smaller each pass), slow:SECONDS,
                say:TEXT
Bad answers     empty, blank, none (null), word_none (the word), refusal, truncated, thinking_only, tool_call, echo,
                longer, wrong_language, braces, nul, no_usage, no_choices, garbage
Refusals        status:CODE, 429:RETRY-AFTER (seconds or an HTTP date), context_length, quota, key_echo, roles,
                redirect:URL
The wire        hang, held (an honest answer, once `release` is called), cut, drip, endless, compressed
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model_server import honest

DEFAULT_TOKENS = 800
# Of the asked length, pass by pass; the last repeats.
SHRINKING = (3.0, 2.0, 1.4, 0.9)

_STATUS = {
    400: ("The request is not valid.", "invalid_request_error"),
    401: ("Incorrect API key provided.", "invalid_request_error"),
    402: ("Insufficient credits.", "insufficient_credits"),
    403: ("You are not allowed to sample from this model.", "permission_error"),
    404: ("The model does not exist or you do not have access to it.", "invalid_request_error"),
    500: ("The server had an error while processing your request. Sorry about that!", "server_error"),
    503: ("The engine is currently overloaded, please try again later.", "server_error"),
}
_NAMES = frozenset(
    (
        "honest",
        "fixed_tokens",
        "long_then_short",
        "slow",
        "say",
        "empty",
        "blank",
        "none",
        "word_none",
        "refusal",
        "truncated",
        "thinking_only",
        "tool_call",
        "echo",
        "longer",
        "wrong_language",
        "braces",
        "nul",
        "no_usage",
        "no_choices",
        "garbage",
        "status",
        "429",
        "context_length",
        "quota",
        "key_echo",
        "roles",
        "redirect",
        "hang",
        "held",
        "cut",
        "drip",
        "endless",
        "compressed",
    )
)


@dataclass(slots=True)
class Reply:
    """An HTTP answer and how it travels."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: bool = False
    held: bool = False
    cut: bool = False
    drip: bool = False


def known(behaviour: str) -> bool:
    """Whether there is a behaviour of that name."""
    return behaviour.partition(":")[0] in _NAMES


def reply(behaviour: str, body: dict[str, Any], *, key: str, repeated: int) -> Reply:
    """The answer to a request. `repeated`: how often this behaviour was used before, in a row, for this model."""
    name, _, argument = behaviour.partition(":")
    refused = _refusal(name, argument, body, key)
    if refused is not None:
        return refused
    if name == "hang":
        return Reply(hang=True)
    if name == "garbage":
        return Reply(body=b"<html>502 Bad Gateway</html>", headers={"Content-Type": "text/html"})
    if name == "endless":
        return Reply(body=b" " * (9 * 1024 * 1024))
    answer = _answer(name, argument, body, repeated)
    data = json.dumps(answer).encode()
    if name == "compressed":
        return Reply(body=gzip.compress(data), headers={"Content-Encoding": "gzip"})
    delay = float(argument) if name == "slow" else 0.0
    return Reply(body=data, delay=delay, held=name == "held", cut=name == "cut", drip=name == "drip")


def error_body(message: str, kind: str, code: str | None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _refusal(name: str, argument: str, body: dict[str, Any], key: str) -> Reply | None:
    headers: dict[str, str] = {}
    code = None
    if name == "status":
        status = int(argument)
        message, kind = _STATUS.get(status, ("No.", "error"))
    elif name == "429":
        status, message, kind, code = 429, "Rate limit reached for requests.", "requests", "rate_limit_exceeded"
        headers = {"Retry-After": argument} if argument else {}
    elif name == "quota":
        status, message, kind, code = 429, "You exceeded your quota.", "insufficient_quota", "insufficient_quota"
    elif name == "context_length":
        tokens = honest.prompt_tokens(body)
        status, kind, code = 400, "invalid_request_error", "context_length_exceeded"
        message = (
            f"This model's maximum context length is {max(1, tokens - 1)} tokens. However, your messages resulted in"
            f" {tokens} tokens. Please reduce the length of the messages."
        )
    elif name == "key_echo":
        status, kind, code = 401, "invalid_request_error", "invalid_api_key"
        message = f"Incorrect API key provided: {key}. You can find your API key at the provider's site."
    elif name == "roles":  # words at which some clients rewrite the messages and try again by themselves
        status, message, kind = 400, "Conversation roles must alternate user/assistant/...", "invalid_request_error"
    elif name == "redirect":
        status, message, kind, headers = 307, "Moved.", "redirect", {"Location": argument}
    else:
        return None
    return Reply(status, json.dumps(error_body(message, kind, code)).encode(), headers)


def _answer(name: str, argument: str, body: dict[str, Any], repeated: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _text(name, argument, body, repeated)}
    finish = "stop"
    if name == "thinking_only":
        message["reasoning_content"] = "The user wants a summary. Let me think about what matters."
    elif name == "tool_call":
        function = {"name": "write_summary", "arguments": '{"text": "done"}'}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        finish = "tool_calls"
    elif name == "truncated":
        finish = "length"
    written = honest.tokens(message["content"] or message.get("reasoning_content") or "")
    read = honest.prompt_tokens(body)
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model"),
        "choices": [] if name == "no_choices" else [{"index": 0, "message": message, "finish_reason": finish}],
        **({} if name == "no_usage" else {"usage": usage}),
    }


def _text(name: str, argument: str, body: dict[str, Any], repeated: int) -> str | None:
    fixed = {
        "empty": "",
        "blank": " \n\t \n",
        "none": None,
        "word_none": "NONE",
        "thinking_only": None,
        "tool_call": None,
        "refusal": "I'm sorry, but I can't help with that request.",
    }
    if name in fixed:
        return fixed[name]
    if name == "say":
        return argument
    if name == "echo":
        return "\n\n".join(honest.prompt_texts(body))
    noted = honest.notes(body)
    if noted is not None:
        return _damaged(name, noted)
    ask = honest.read(body)
    length = ask.length or DEFAULT_TOKENS
    if name == "fixed_tokens":
        length = int(argument)
    elif name == "long_then_short":
        length = int(length * SHRINKING[min(repeated, len(SHRINKING) - 1)])
    elif name == "longer":
        length = honest.prompt_tokens(body) * 3 // 2 + 100
    elif ask.max_tokens:
        length = min(length, ask.max_tokens * 9 // 10)
    if name == "wrong_language":  # it would translate what it was to keep
        ask = replace(ask, facts=())
    text = honest.write(ask, length, language="german" if name == "wrong_language" else "english")
    return _damaged(name, text)


def _damaged(name: str, text: str) -> str:
    """The text as this behaviour spoils it."""
    if name == "truncated":
        return text[: len(text) * 2 // 3]
    if name == "braces":
        return text + "\nThe template is {name} with {0}, {{}}, %s, %(x)d and ${HOME}."
    return text.replace(" the ", " \x00the ") + "\x00" if name == "nul" else text
