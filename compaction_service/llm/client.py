"""One chat completion through litellm, whatever the provider. Workers only: no web process imports this module.

litellm does the translation between providers; everything that has to be sure is ours: the wire (`transport`), the
meaning of errors (`errors`), and that keys and texts of a call reach nothing but its request.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx

from compaction_service.engine import model_names
from compaction_service.llm import urls
from compaction_service.llm.errors import CallError, Code, call_error, error_of_status, parse_retry_after
from compaction_service.llm.headers import is_reserved
from compaction_service.llm.transport import CONNECT_TIMEOUT, Exchange, GuardedTransport, on_the_wire

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import asks the network for its price map
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # likewise
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file it finds
    "USE_LITELLM_PROXY": "False",  # else it sends every call where the environment says
    "LOGGING_EXECUTOR_MAX_THREADS": "1",  # litellm logs each success on a thread; the default is a hundred
}
# They print requests, answers and errors, keys and conversations included, at one level or another.
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")
_NO_KEY = "none"
_NOWHERE = "http://127.0.0.1:9/v1"

_lock = threading.Lock()
_loaded: Any = None


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One call: `model` is a litellm name, or, with `api_base`, any name an OpenAI-compatible server knows.

    Without `api_base` it needs a key: those of the environment are nobody's. `timeout`: seconds for the whole call.
    `max_tokens`: of the answer. `allow_local`: `api_base` may be a loopback address (development, tests).
    `extra_headers`: reserved ones are left out. Texts and key are kept out of `repr`.
    """

    model: str
    system: str = field(repr=False)
    user: str = field(repr=False)
    max_tokens: int
    timeout: float
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    extra_headers: dict[str, str] | None = field(default=None, repr=False)
    temperature: float | None = None
    allow_local: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. `text` is "" where the model wrote none (refusals and bare reasoning included).

    Tokens as the provider counts them, None where it does not say; `cost` in US dollars by litellm's price map, None
    for a model it does not know; `model` as the provider names it.
    """

    text: str = field(repr=False)
    finish_reason: str
    tool_calls: bool
    tokens_in: int | None
    tokens_out: int | None
    cost: Decimal | None
    model: str
    duration_ms: int


def preload() -> None:
    """Import litellm, silent and offline (about 4 s and 200 MB; once per process, from any thread)."""
    global _loaded  # noqa: PLW0603  # the module's one lazy import
    with _lock:
        if _loaded is not None:
            return
        os.environ.update(_ENVIRONMENT)
        # litellm imports a provider's part of itself at the first call to it, and pydantic remarks on its types.
        warnings.filterwarnings("ignore", r"Items? '.*' on TypedDict class", UserWarning)
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            # Deprecations inside litellm and its dependencies: nothing this service can mend.
            warnings.simplefilter("ignore")
            import litellm

            litellm.set_verbose = False
            litellm.suppress_debug_info = True
            litellm.callbacks = []
            litellm.success_callback = []
            litellm.failure_callback = []
            # Both hooks take what every provider's client is built on. Neither knows a key.
            transport = GuardedTransport()
            litellm.sync_transport = transport
            litellm.client_session = httpx.Client(transport=transport, follow_redirects=False, trust_env=False)
            # litellm imports much of itself at its first call. Outside an exchange the transport refuses this one, and
            # a call that fails starts no thread, so a worker can still fork.
            with contextlib.suppress(Exception):
                litellm.completion(
                    "openai/none", [{"role": "user", "content": "-"}], api_key=_NO_KEY, api_base=_NOWHERE, max_retries=0
                )
        _loaded = litellm


def complete(request: CompletionRequest) -> Completion:
    """One non-streamed completion, one HTTP request. Raises `CallError` and nothing else. Thread-safe."""
    preload()
    begun = time.monotonic()
    headers = {name: value for name, value in (request.extra_headers or {}).items() if not is_reserved(name)}
    exchange = Exchange(
        begun + request.timeout,
        allow_local=request.allow_local and request.api_base is not None,
        headers=frozenset(name.lower() for name in headers),
    )
    try:
        arguments = _arguments(request, headers)
        with on_the_wire(exchange):
            answer = _loaded.completion(**arguments)
        return _completion(request, answer, begun)
    except urls.UrlRefused:
        error = call_error("url_refused")
    except CallError as refused:
        error = refused
    except Exception as failure:  # noqa: BLE001  # litellm raises bare Exceptions too
        error = _error_of(failure, exchange)
    raise error  # out here, so that no traceback leads to the provider's words


def _arguments(request: CompletionRequest, headers: dict[str, str]) -> dict[str, Any]:
    """litellm's arguments. Everything is per call; its globals stay empty, and it has nothing left to find by itself:
    provider and key are always given.

    Raises `CallError` for a model that is not called, UrlRefused for a base URL of an unacceptable form.
    """
    if request.api_base is not None:
        urls.split_base_url(request.api_base, request.allow_local)
    elif not request.api_key:
        raise call_error("authentication")
    provider, name = _provider(request.model, by_url=request.api_base is not None)
    arguments: dict[str, Any] = {
        "model": name,
        "custom_llm_provider": provider,
        "api_key": request.api_key or _NO_KEY,
        "messages": [
            {"role": "system", "content": _encodable(request.system)},
            {"role": "user", "content": _encodable(request.user)},
        ],
        "max_tokens": request.max_tokens,
        # The transport keeps the deadline. A constant here, since litellm keeps a client per value.
        "timeout": httpx.Timeout(3600.0, connect=CONNECT_TIMEOUT),
        "max_retries": 0,
        "stream": False,
        "drop_params": True,  # a model without a temperature is no reason to fail
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if headers:
        arguments["extra_headers"] = headers
    if request.api_base is not None:
        arguments["api_base"] = request.api_base
    return arguments


def _provider(model: str, *, by_url: bool) -> tuple[str, str]:
    """The provider that is called, and the model's name there. Raises `CallError` for one that is not called."""
    provider, name = model_names.split(model)
    if model_names.problem(model) is not None:
        raise call_error("bad_request")
    if provider is None and by_url:
        provider = "openai"
    elif provider is None:  # litellm knows some names without a prefix, by lists
        name, provider, *_ = _loaded.get_llm_provider(model)
    if provider not in model_names.PROVIDERS or (provider in model_names.BY_URL and not by_url):
        raise call_error("bad_request")
    return provider, name


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced: JSON on the wire is UTF-8, which has none."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _completion(request: CompletionRequest, answer: Any, begun: float) -> Completion:
    if not answer.choices:
        raise call_error("invalid_response", 200)
    choice = answer.choices[0]
    usage: Any = getattr(answer, "usage", None)
    told = bool(usage and usage.prompt_tokens)  # litellm makes zeros of a missing usage
    cost = answer._hidden_params.get("response_cost")  # noqa: SLF001  # litellm's documented place for it
    return Completion(
        text=choice.message.content or "",
        finish_reason=str(choice.finish_reason or ""),
        tool_calls=bool(choice.message.tool_calls or getattr(choice.message, "function_call", None)),
        tokens_in=usage.prompt_tokens if told else None,
        tokens_out=usage.completion_tokens if told else None,
        cost=None if cost is None or not told else Decimal(str(cost)),
        model=answer.model or request.model,
        duration_ms=round((time.monotonic() - begun) * 1000),
    )


def _error_of(failure: Exception, exchange: Exchange) -> CallError:
    """What went wrong: by what the wire saw, and by litellm's class where the wire does not tell."""
    status = exchange.status
    if exchange.refused:
        return call_error("url_refused")
    if status is None:
        return call_error("timeout" if exchange.timed_out else _code_without_answer(failure, exchange))
    if 200 <= status < 300:
        # Some gateways wrap a refusal in a 200.
        return call_error("rate_limited" if _is(failure, "RateLimitError") else "invalid_response", status)
    if _is(failure, "ContextWindowExceededError"):
        return call_error("context_length", status)
    return error_of_status(status, exchange.refusal, parse_retry_after(exchange.retry_after, datetime.now(UTC)))


def _code_without_answer(failure: Exception, exchange: Exchange) -> Code:
    if exchange.posted:
        return "connection"
    # Nothing was sent: litellm itself found no provider, no key, or a header that cannot be sent.
    return "authentication" if _is(failure, "AuthenticationError") else "bad_request"


def _is(failure: Exception, name: str) -> bool:
    return isinstance(failure, getattr(_loaded, name))
