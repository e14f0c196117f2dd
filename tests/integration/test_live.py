"""The main job through the running service: web, worker and beat as processes, over HTTP."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from compaction_service.compactions import requests
from compaction_service.tokens.messages import counter_for
from tests.inprocess import Clock, service_of
from tests.integration.test_faults import LINE
from tests.integration.test_races import turn
from tests.invariants import audit, chain_problems, context_problems
from tests.model_server import Control, spawned

COUNTER = counter_for("o200k_base", 1.0)


@pytest.fixture(scope="module")
def outside() -> Iterator[Control]:
    """A model server in a process of its own."""
    with spawned() as control:
        yield control


@pytest.fixture
def summarizer(api: httpx.Client, outside: Control) -> str:
    """The tenant's summarizer, honest until scripted."""
    name = f"scripted-{uuid.uuid4().hex}"
    given = {"model": name, "api_base": outside.base_url, "api_key": outside.key}
    assert api.patch("/tenant", json={"summarizer": given}).status_code == 200
    return name


def created(api: httpx.Client, **fields: Any) -> str:
    answer = api.post("/conversations", json={"model": "gpt-4o", "context_window": 4000, **fields})
    assert answer.status_code == 201, answer.text
    return f"/conversations/{answer.json()['id']}"


def appended(api: httpx.Client, path: str, *messages: Any) -> Any:
    answer = api.post(f"{path}/messages", json={"messages": list(messages)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_conversation__grows_past_its_limit__is_compacted_by_the_worker(
    api: httpx.Client, tenant: Any, outside: Control, summarizer: str
) -> None:
    path = created(api, policy={"enabled": True}, system="Be brief.")
    for n in range(12):
        appended(api, path, *turn(f"{n}. {LINE * 5}"))
        context = api.get(f"{path}/context", params={"wait": 60, "wait_for": "idle"}).json()
        assert context["compaction"] is None
        assert context["degraded"] is False
        assert context_problems(context, COUNTER, reserve=1000, system="Be brief.") == []
    log = api.get("/compactions", params={"conversation": path.removeprefix("/conversations/")}).json()["data"]
    assert {(entry["outcome"], entry["method"]) for entry in log if entry["outcome"] == "applied"} == {
        ("applied", "llm")
    }
    assert len(outside.calls(summarizer)) == sum(len(entry["passes"]) for entry in log)
    assert chain_problems(tenant.id, path.removeprefix("/conversations/")) == []
    assert audit(tenant.id, path.removeprefix("/conversations/"), COUNTER) == []


def test_compaction__asked_for_with_wait__answers_when_it_has_ended(api: httpx.Client, summarizer: str) -> None:
    path = created(api, messages=[message for n in range(8) for message in turn(f"{n}. {LINE * 3}")])
    key = {"Idempotency-Key": uuid.uuid4().hex}
    answer = api.post(f"{path}/compactions", json={"wait": 60}, headers=key)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "applied")
    assert answer.headers["Location"] == f"/v1/compactions/{answer.json()['id']}"
    again = api.post(f"{path}/compactions", json={"wait": 60}, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["id"] == answer.json()["id"]


def test_compaction__summary_too_long__each_pass_is_worked_off(
    api: httpx.Client, outside: Control, summarizer: str
) -> None:
    outside.script(summarizer, ["fixed_tokens:800", "fixed_tokens:500", "fixed_tokens:80"])
    policy = {"summary_max_tokens": 150}
    path = created(api, policy=policy, messages=[message for n in range(10) for message in turn(f"{n}. {LINE * 5}")])
    entry = api.post(f"{path}/compactions", json={"wait": 60}).json()
    assert [one["kind"] for one in entry["passes"]] == ["summary", "resummarize", "resummarize"]
    assert entry["outcome"] == "applied"


def test_compactions__many_with_a_slow_model__are_in_flight_together(
    api: httpx.Client, outside: Control, summarizer: str
) -> None:
    outside.script(summarizer, "slow:2")
    paths = [created(api, messages=[m for n in range(8) for m in turn(f"{n}. {LINE * 3}")]) for _ in range(16)]
    start = time.monotonic()
    for path in paths:
        assert api.post(f"{path}/compactions", json={}).status_code == 202
    for path in paths:
        assert api.get(f"{path}/context", params={"wait": 60, "wait_for": "idle"}).json()["covered"]
    assert time.monotonic() - start < 16 * 2 / 2  # one after another would be 32 s
    assert outside.most_in_flight() >= 8


def test_work__wake_up_lost__the_sweep_finds_it(
    api: httpx.Client, tenant: Any, summarizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "wake", lambda: None)
    service = service_of(tenant, Clock())  # the views in this process, at the worker's own time
    path = service.create(messages=[message for n in range(8) for message in turn(f"{n}. {LINE * 3}")])
    service.post(f"{path}/compactions", status=202)
    context = api.get(f"/{path}/context", params={"wait": 20, "wait_for": "idle"}).json()
    assert context["covered"]["from"] == 1


def test_refused_body__of_a_kept_connection__does_not_stand_before_the_next_request(api: httpx.Client) -> None:
    huge = b'{"model": "' + b"x" * (33 * 1024 * 1024) + b'"}'
    refused = api.post("/conversations", content=huge, headers={"Content-Type": "application/json"})
    assert refused.status_code == 413
    assert api.get("/conversations", timeout=20).status_code == 200

    wrong = {"Content-Type": "application/json", "Authorization": "Bearer ck_wrong"}
    assert api.post("/conversations", content=huge[: 2**20], headers=wrong).status_code == 401
    assert api.get("/conversations", timeout=20).status_code == 200
