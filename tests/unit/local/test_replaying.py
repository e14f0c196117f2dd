"""How a transcript is cut into appends, and how the client behaves when the service does not."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from compaction_service.local import replaying
from compaction_service.local.api_client import Api, ApiFailure
from compaction_service.local.transcripts import Transcript

USER = {"role": "user", "content": "Hi"}


def test_steps__parallel_results__are_one_append_and_every_other_message_its_own() -> None:
    roles = ["user", "user", "assistant", "tool", "tool", "assistant", "assistant"]
    batches = replaying.steps([{"role": role} for role in roles])
    assert [[one["role"] for one in batch] for batch in batches] == [
        ["user"],
        ["user"],
        ["assistant"],
        ["tool", "tool"],
        ["assistant"],
        ["assistant"],
    ]


@pytest.mark.parametrize(("fmt", "model"), [("openai", "gpt-4o"), ("anthropic", "claude-sonnet-4-5")])
def test_replay__of_either_format__creates_a_conversation_of_it(fmt: str, model: str) -> None:
    seen: list[httpx.Request] = []
    transcript = Transcript("talk", fmt, None, None, None, [USER])
    with (
        Api("http://test/v1", "key", failing(httpx.Response(400, json={}), seen=seen)) as api,
        pytest.raises(ApiFailure),
    ):
        replaying.replay(api, transcript, replaying.Options())
    body = json.loads(seen[0].content)
    assert (body["format"], body["model"]) == (fmt, model)


def failing(*answers: httpx.Response | Exception, seen: list[httpx.Request]) -> httpx.MockTransport:
    """Answers in order."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    return httpx.MockTransport(answer)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses asked for; none is made."""
    asked: list[float] = []
    monkeypatch.setattr(time, "sleep", asked.append)
    return asked


def test_post__lost_answers_and_refusals__sent_again_with_the_same_key_and_body(pauses: list[float]) -> None:
    seen: list[httpx.Request] = []
    limited = httpx.Response(429, headers={"Retry-After": "3"})
    transport = failing(httpx.ReadError("gone"), limited, httpx.Response(503), httpx.Response(201, json={}), seen=seen)
    with Api("http://test/v1", "key", transport) as api:
        assert api.post("conversations", {"text": "\ud800é"}) == {}
    assert len({(one.headers["Idempotency-Key"], one.content) for one in seen}) == 1
    assert json.loads(seen[0].content) == {"text": "\ud800é"}
    assert pauses[1] == 3


def test_post__refused__failure_says_what_the_api_said() -> None:
    body = {
        "errors": [{"code": "invalid", "detail": "Must be so.", "attr": "policy.target"}],
        "numbers": {"budget": 5},
        "request_id": "r1",
    }
    transport = failing(httpx.Response(400, json=body), seen=[])
    with Api("http://test/v1", "key", transport) as api, pytest.raises(ApiFailure) as failure:
        api.post("conversations", {})
    assert str(failure.value) == (
        'POST conversations was answered with 400: policy.target: Must be so. {"budget": 5} (request r1)'
    )


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"errors": 1}', '{"errors": [{}]}'])
def test_get__an_answer_of_something_else__is_a_failure(body: str) -> None:
    with (
        Api("http://test/v1", "key", failing(httpx.Response(404, text=body), seen=[])) as api,
        pytest.raises(ApiFailure, match="404"),
    ):
        api.get("conversations")


def test_get__nobody_there__failure_after_the_attempts(pauses: list[float]) -> None:
    seen: list[httpx.Request] = []
    transport = failing(*[httpx.ConnectError("refused")] * 3, seen=seen)
    with Api("http://test/v1", "key", transport) as api, pytest.raises(ApiFailure, match="No answer from http://test"):
        api.get("conversations", attempts=3)
    assert len(seen) == 3
    assert len(pauses) == 2


def test_all__pages__are_read_to_the_end() -> None:
    pages: list[dict[str, Any]] = [{"data": [{"a": 1}], "next_cursor": "x"}, {"data": [{"a": 2}], "next_cursor": None}]
    seen: list[httpx.Request] = []
    with Api("http://test/v1", "key", failing(*(httpx.Response(200, json=p) for p in pages), seen=seen)) as api:
        assert api.all("compactions", {"conversation": "c"}) == [{"a": 1}, {"a": 2}]
    assert seen[1].url.params["cursor"] == "x"
    assert seen[1].url.params["conversation"] == "c"


@pytest.mark.parametrize("base", ["nowhere", "http://[", "ftp://host/v1"])
def test_api__an_address_that_is_none__is_a_failure(base: str) -> None:
    with pytest.raises(ApiFailure), Api(base, "key") as api:
        api.get("conversations")
