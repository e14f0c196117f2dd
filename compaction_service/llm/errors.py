"""What can go wrong with a call to a model, in terms that decide what happens next (semantics 7).

No provider's words leave this module: they may quote the conversation, and some quote the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, get_args

Code = Literal[
    "rate_limited",
    "server_error",
    "timeout",
    "connection",
    "bad_request",
    "authentication",
    "payment_required",
    "permission",
    "not_found",
    "context_length",
    "invalid_response",
    "url_refused",
]
CODES: tuple[str, ...] = get_args(Code)

_SENTENCES: dict[Code, str] = {
    "rate_limited": "The model's provider limits the rate of calls.",
    "server_error": "The model's provider failed.",
    "timeout": "The model did not answer in time.",
    "connection": "The connection to the model's provider failed.",
    "bad_request": "The model's provider refused the request.",
    "authentication": "The model's provider refused the key.",
    "payment_required": "The account at the model's provider has no credit left.",
    "permission": "The key may not use this model.",
    "not_found": "The model's provider does not know this model or URL.",
    "context_length": "The request is longer than the model's window.",
    "invalid_response": "The answer of the model's provider cannot be read.",
    "url_refused": "The base URL may not be called.",
}
_TRANSIENT: frozenset[Code] = frozenset({"rate_limited", "server_error", "timeout", "connection"})
_BY_STATUS: dict[int, Code] = {
    401: "authentication",
    402: "payment_required",
    403: "permission",
    404: "not_found",
    408: "timeout",
    429: "rate_limited",
}
# What providers say when the input is too long: OpenAI, vLLM, SGLang, llama.cpp, Anthropic, Bedrock, Gemini,
# Mistral, Cohere, OpenRouter. Matched on refusals only, in lower case.
_OVERFLOW = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "too large for model",
    "longer than the model",
    "exceeds the maximum number of tokens",
    "exceed the maximum number of tokens",
    "reduce the length of the messages",
    "request too large",
)


@dataclass(eq=False)  # not frozen: Python itself writes an exception's traceback
class CallError(Exception):
    """A call that gave no completion.

    `transient`: the same call may succeed later. `retry_after`: seconds the provider asked to wait. `status`: the
    HTTP status, None where no answer came. `overflow`: the input was too long, a shorter one may succeed.
    `str()` is a sentence of ours with the status, safe to store and to show.
    """

    code: Code
    transient: bool
    retry_after: float | None = None
    status: int | None = None
    overflow: bool = False

    def __str__(self) -> str:
        sentence = _SENTENCES[self.code]
        return sentence if self.status is None else f"{sentence[:-1]} (status {self.status})."


def call_error(code: Code, status: int | None = None, retry_after: float | None = None) -> CallError:
    """The error of that code, with what follows from it."""
    return CallError(code, code in _TRANSIENT, retry_after, status, code == "context_length")


def error_of_status(status: int, text: str, retry_after: float | None) -> CallError:
    """The error an HTTP answer means. `text` is what the provider said; it is looked at and forgotten."""
    said = text.lower()
    if status == 413 or (status in (400, 422, 429) and any(phrase in said for phrase in _OVERFLOW)):
        return call_error("context_length", status)
    if status == 429 and "insufficient_quota" in said:  # OpenAI's way to say 402: waiting does not help
        return call_error("payment_required", status)
    if status in _BY_STATUS:
        return call_error(_BY_STATUS[status], status, retry_after)
    if status >= 500:
        return call_error("server_error", status, retry_after)
    # A redirect is not followed: it could lead anywhere, and a POST has no business there.
    return call_error("bad_request" if status >= 400 else "invalid_response", status)


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait of a Retry-After header: a number of seconds or an HTTP date. None if it says neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None  # NaN fails the comparison too
