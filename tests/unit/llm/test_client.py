from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, NoReturn

import httpcore
import pytest

from compaction_service.engine import model_names
from compaction_service.llm.client import CompletionRequest
from compaction_service.llm.errors import CallError
from tests.model_server import Control, running
from tests.unit.llm.conftest import Call


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


Wire = list[tuple[httpcore.URL, list[tuple[bytes, bytes]]]]
UNCALLED = [
    *(f"{provider}/some-model" for provider in sorted(model_names.NOT_CALLED)),
    "oobabooga/http://169.254.169.254/latest",
    "openai/http://169.254.169.254/latest",
    "http://169.254.169.254/latest",
]


# litellm imports a provider's part of itself at the first call to it; what that remarks on is nothing of ours.
imports_parts_of_litellm = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """What is asked of the connections below our transport, none of which is made."""
    asked: Wire = []

    def stream(_pool: object, _method: str, url: httpcore.URL, **given: Any) -> NoReturn:
        asked.append((url, given["headers"]))
        raise httpcore.ConnectError

    monkeypatch.setattr(httpcore.ConnectionPool, "stream", stream)
    return asked


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Look-ups and connections of anybody in this process; none is made."""
    seen: list[object] = []

    def refused(*given: Any, **_: Any) -> NoReturn:
        seen.append(given)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    return seen


def failure_of(call: Call, behaviour: str | None = None, **fields: object) -> CallError:
    with pytest.raises(CallError) as caught:
        call(behaviour, **fields)
    return caught.value


def test_complete__honest_model__gives_text_usage_and_reason(call: Call, server: Control, model: str) -> None:
    completion = call("fixed_tokens:100", extra_headers={"X-Team": "blue"}, temperature=0.2)

    assert completion.text
    assert (completion.finish_reason, completion.tool_calls) == ("stop", False)
    assert (completion.tokens_in or 0) > 0
    assert (completion.tokens_out or 0) > 0
    assert completion.cost is None  # a model no price map knows
    assert completion.model == model
    assert completion.duration_ms >= 0
    (received,) = server.calls(model)
    assert received["key_ok"]
    assert received["headers"]["x-team"] == "blue"
    assert received["body"] == {
        "model": model,
        "messages": [{"role": "system", "content": "You summarise."}, {"role": "user", "content": "Hello."}],
        "max_tokens": 500,
        "temperature": 0.2,
    }


@pytest.mark.parametrize(
    ("behaviour", "text", "finish_reason", "tool_calls"),
    [
        ("empty", "", "stop", False),
        ("blank", " \n\t \n", "stop", False),
        ("none", "", "stop", False),
        ("thinking_only", "", "stop", False),
        ("tool_call", "", "tool_calls", True),
        ("refusal", "I'm sorry, but I can't help with that request.", "stop", False),
    ],
)
def test_complete__answer_without_a_summary__is_handed_over_as_it_is(
    call: Call, behaviour: str, text: str, finish_reason: str, tool_calls: bool
) -> None:
    completion = call(behaviour)

    assert (completion.text, completion.finish_reason, completion.tool_calls) == (text, finish_reason, tool_calls)


def test_complete__truncated_answer__says_length(call: Call) -> None:
    assert call("truncated").finish_reason == "length"


def test_complete__text_of_any_content__arrives(call: Call, server: Control, model: str) -> None:
    hostile = "{braces} %s %(x)d \x00 \U0001f600 \u05d0 </s><|endoftext|>"
    pair = "\ud83d\ude00"  # the halves of one emoji, as JSON escapes give them

    completion = call("echo", user=f"{hostile} {pair} \udc00")

    sent = server.calls(model)[0]["body"]["messages"][1]["content"]
    assert sent == f"{hostile} \U0001f600 \ufffd"
    assert sent in completion.text


def test_complete__provider_without_usage__does_not_invent_it(call: Call) -> None:
    completion = call("no_usage")

    assert (completion.tokens_in, completion.tokens_out, completion.cost) == (None, None, None)


def test_complete__priced_model__has_its_cost(call: Call) -> None:
    completion = call(model="openai/gpt-4o-mini")

    assert isinstance(completion.cost, Decimal)
    assert completion.cost > 0


@pytest.mark.parametrize(
    ("given", "sent"),
    [("openai/gpt-4o-mini", "gpt-4o-mini"), ("meta-llama/Llama-3", "meta-llama/Llama-3"), ("claude-x", "claude-x")],
)
def test_complete__base_url__is_called_as_openai_compatible(call: Call, server: Control, given: str, sent: str) -> None:
    before = len(server.calls(sent))

    call(model=given)

    assert len(server.calls(sent)) == before + 1


@pytest.mark.parametrize(
    ("behaviour", "code", "transient", "status"),
    [
        ("status:400", "bad_request", False, 400),
        ("status:401", "authentication", False, 401),
        ("status:402", "payment_required", False, 402),
        ("status:403", "permission", False, 403),
        ("status:404", "not_found", False, 404),
        ("status:408", "timeout", True, 408),
        ("status:409", "bad_request", False, 409),
        ("status:413", "context_length", False, 413),
        ("status:422", "bad_request", False, 422),
        ("status:500", "server_error", True, 500),
        ("status:502", "server_error", True, 502),
        ("status:503", "server_error", True, 503),
        ("status:529", "server_error", True, 529),
        ("429", "rate_limited", True, 429),
        ("quota", "payment_required", False, 429),
        ("context_length", "context_length", False, 400),
        ("garbage", "invalid_response", False, 200),
        ("no_choices", "invalid_response", False, 200),
        ("compressed", "invalid_response", False, 200),
        ("endless", "invalid_response", False, 200),
        ("cut", "connection", True, None),
    ],
)
def test_complete__failure__has_its_code_after_one_request(
    call: Call, server: Control, model: str, behaviour: str, code: str, transient: bool, status: int | None
) -> None:
    error = failure_of(call, behaviour)

    assert (error.code, error.transient, error.status) == (code, transient, status)
    assert error.overflow is (code == "context_length")
    assert len(server.calls(model)) == 1


def test_complete__rate_limited__hands_on_what_the_provider_asks(call: Call) -> None:
    assert failure_of(call, "429:7").retry_after == 7.0
    assert failure_of(call, "429:Wed, 21 Oct 2015 07:28:00 GMT").retry_after == 0.0
    assert failure_of(call, "429:soon").retry_after is None


@pytest.mark.parametrize("behaviour", ["hang", "drip", "slow:30"])
def test_complete__no_whole_answer_in_time__stops_at_the_deadline(call: Call, behaviour: str) -> None:
    begun = time.monotonic()

    error = failure_of(call, behaviour, timeout=0.6)

    assert 0.5 < time.monotonic() - begun < 3.0
    assert (error.code, error.transient, error.status) == ("timeout", True, None)


def test_complete__nobody_listens__is_a_connection_error(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]

    assert failure_of(call, api_base=f"http://127.0.0.1:{port}/v1").code == "connection"


def test_complete__other_providers_client__is_held_to_the_same_rules(call: Call, silent_port: int) -> None:
    base, begun = f"http://127.0.0.1:{silent_port}", time.monotonic()

    assert failure_of(call, model="anthropic/claude-x", api_base=base, timeout=0.5).code == "timeout"
    assert time.monotonic() - begun < 3.0
    assert failure_of(call, model="anthropic/claude-x", api_base=base, allow_local=False).code == "url_refused"


def test_complete__redirect__is_not_followed(call: Call, server: Control, model: str) -> None:
    error = failure_of(call, f"redirect:{server.base_url}/chat/completions")

    assert (error.code, error.status) == ("invalid_response", 307)
    assert len(server.calls(model)) == 1


def test_complete__words_at_which_litellm_tries_again__still_make_one_request(
    call: Call, server: Control, model: str
) -> None:
    error = failure_of(call, "roles")

    assert (error.code, error.status) == ("bad_request", 400)
    assert len(server.calls(model)) == 1


def test_complete__proxy_in_the_environment__is_not_used(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert call("honest").text


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}/v1", "https://localhost:{port}/v1", "https://[::1]:{port}"])
def test_complete__local_base_url_not_allowed__is_refused_unsent(call: Call, server: Control, url: str) -> None:
    port = server.url.rpartition(":")[2]

    error = failure_of(call, api_base=url.replace("{port}", port), allow_local=False)

    assert (error.code, error.transient) == ("url_refused", False)


def test_complete__name_that_changes_its_address__is_refused_at_the_connection(
    call: Call, server: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 443))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry])

    assert failure_of(call, api_base="https://rebound.example/v1").code == "url_refused"


def test_complete__base_url_of_a_tenant__gets_nothing_of_the_operators(
    call: Call, server: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "operators")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: operators")
    server.script(model, "honest", key="operators")

    call(api_key=None, extra_headers={"X-Mine": "mine"})

    (received,) = server.calls(model)
    assert not received["key_ok"]
    assert "operators" not in str(received["headers"])
    assert received["headers"]["x-mine"] == "mine"


def test_complete__provider_with_credentials_of_the_process__takes_no_base_url(call: Call) -> None:
    assert failure_of(call, model="bedrock/anthropic.claude-v2").code == "bad_request"


@pytest.mark.parametrize("model", UNCALLED)
@pytest.mark.parametrize("by_url", [False, True])
def test_complete__model_that_is_not_called__is_refused_without_a_look_up(
    call: Call, elsewhere: list[object], server: Control, model: str, by_url: bool
) -> None:
    error = failure_of(call, model=model, api_base=server.base_url if by_url else None)

    assert (error.code, error.transient) == ("bad_request", False)
    assert elsewhere == []


def test_complete__name_without_a_prefix__goes_to_its_provider_only_where_that_is_called(
    call: Call, wire: Wire
) -> None:
    failure_of(call, model="gpt-4o-mini", api_base=None)
    assert [str(url.host, "ascii") for url, _ in wire] == ["api.openai.com"]

    error = failure_of(call, model="anthropic.claude-v2", api_base=None)
    assert (error.code, len(wire)) == ("bad_request", 1)


@imports_parts_of_litellm
@pytest.mark.parametrize("provider", sorted(model_names.PROVIDERS - model_names.BY_URL))
def test_complete__called_provider__gets_one_request_with_the_calls_key_and_nothing_of_the_environment(
    call: Call, wire: Wire, elsewhere: list[object], monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    own = provider.upper()
    for stem in (own, own.partition("_")[0], "OPENAI", "GOOGLE", "AWS", "CO", "PERPLEXITYAI", "TOGETHERAI"):
        for end in (*("API_KEY", "AI_API_KEY", "ADMIN_KEY", "API_TOKEN", "TOKEN", "AUTH_TOKEN", "ACCESS_KEY_ID"),
                    *("SECRET_ACCESS_KEY", "ORGANIZATION", "ORG_ID", "PROJECT_ID", "PROJECT")):  # fmt: skip
            monkeypatch.setenv(f"{stem}_{end}", "operators")

    failure_of(call, model=f"{provider}/some-model", api_base=None, api_key="tenants")

    ((url, headers),) = wire
    assert url.scheme == b"https"
    assert "tenants" in str(headers)
    assert "operators" not in f"{url}{headers}"
    assert elsewhere == []


@imports_parts_of_litellm
@pytest.mark.parametrize("provider", sorted(model_names.PROVIDERS))
def test_complete__called_provider_at_a_base_url__goes_nowhere_else(
    call: Call, wire: Wire, elsewhere: list[object], provider: str
) -> None:
    failure_of(call, model=f"{provider}/some-model", api_base="https://models.example/v1", api_key=None)

    assert {url.host for url, _ in wire} == {b"models.example"}
    assert elsewhere == []


@imports_parts_of_litellm
@pytest.mark.parametrize("provider", sorted(model_names.PROVIDERS - model_names.BY_URL))
def test_complete__providers_name_that_leads_inside__is_refused_at_the_connection(
    call: Call, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 443))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [entry])

    assert failure_of(call, model=f"{provider}/some-model", api_base=None).code == "url_refused"


@pytest.mark.parametrize("name", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_complete__base_url_in_the_environment__is_vetted_like_any(
    call: Call, server: Control, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, server.base_url)

    assert failure_of(call, model="openai/some-model", api_base=None).code == "url_refused"


@pytest.mark.parametrize("model", ["gpt-4o-mini", "openai/gpt-4o-mini", "anthropic/claude-x", "gemini/gemini-x"])
def test_complete__no_key_and_no_base_url__borrows_none(
    call: Call, wire: Wire, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "operators")

    assert failure_of(call, model=model, api_base=None, api_key=None).code == "authentication"
    assert wire == []


def test_providers_of_litellm__are_all_decided_about(litellm_loaded: None) -> None:
    import litellm
    from litellm.llms.openai_like.json_loader import JSONProviderRegistry

    known = {str(getattr(each, "value", each)) for each in litellm.provider_list}
    assert known | set(JSONProviderRegistry.list_providers()) == model_names.PROVIDERS | model_names.NOT_CALLED
    assert not model_names.PROVIDERS & model_names.NOT_CALLED


def test_complete__reserved_headers_of_a_stored_summarizer__are_left_out(
    call: Call, server: Control, model: str
) -> None:
    given = {
        "Content-Length": "5",
        "hOST": "x",
        "Authorization": "Bearer x",
        "Transfer-Encoding": "chunked",
        "X-A": "b",
    }

    call("honest", extra_headers=given)

    (received,) = server.calls(model)
    assert received["key_ok"]
    assert received["headers"]["x-a"] == "b"
    assert "transfer-encoding" not in received["headers"]


@pytest.mark.parametrize("fields", [{"model": "unheard-of", "api_base": None}, {"api_key": "two\r\nlines"}])
def test_complete__request_that_cannot_be_sent__is_a_bad_request(call: Call, fields: dict[str, str]) -> None:
    error = failure_of(call, **fields)

    assert error.code in ("bad_request", "connection")
    assert error.status is None


@pytest.mark.parametrize("behaviour", ["honest", "key_echo", "status:500", "cut"])
def test_complete__whatever_happens__shows_no_key_and_no_text(
    call: Call, behaviour: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    key, secret = "sk-live-0123456789abcdef", "the launch code is 7391"
    shown = ""
    with caplog.at_level(logging.DEBUG):
        try:
            shown = repr(call(behaviour, api_key=key, user=secret))
        except CallError as error:
            shown = f"{error} {error!r} {''.join(traceback.format_exception(error))}"
    printed = capfd.readouterr()

    for place in (shown, caplog.text, printed.out, printed.err):
        assert key not in place
        assert secret not in place


def test_complete__failure__leads_to_no_other_exception(call: Call) -> None:
    error = failure_of(call, "key_echo")

    assert (error.__context__, error.__cause__) == (None, None)


def test_completion_request__repr__holds_no_key_and_no_text() -> None:
    request = CompletionRequest("m", "my system", "my user", 1, 1.0, None, "my key", {"X": "my header"})

    assert "my " not in repr(request)


def test_complete__64_threads__are_all_in_flight_and_leave_nothing_behind(call: Call, model: str) -> None:
    call("honest")  # whatever is made once is made now
    threads, files = threading.active_count(), len(os.listdir("/dev/fd"))
    with running(latency=2.5) as slow, ThreadPoolExecutor(64) as pool:
        begun = time.monotonic()
        done = list(pool.map(lambda i: call(model=f"{model}-{i}", api_base=slow.base_url), range(64)))
        took = time.monotonic() - begun
        assert slow.most_in_flight() == 64
    assert [completion.model for completion in done] == [f"{model}-{i}" for i in range(64)]
    assert took < 15.0
    assert threading.active_count() <= threads
    assert len(os.listdir("/dev/fd")) <= files


def test_llm_modules__imported_by_a_web_process__do_not_load_litellm() -> None:
    modules = ("urls", "errors", "retry", "breaker", "client")
    code = "import sys\n" + "".join(f"import compaction_service.llm.{name}\n" for name in modules)

    subprocess.run([sys.executable, "-c", f"{code}assert 'litellm' not in sys.modules"], check=True)
