"""Everybody at one conversation at once: nothing is lost, nothing is counted twice, nobody gets a 500."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

from compaction_service.compactions import jobs
from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit, chain_problems

COUNTER = counter_for("o200k_base", 1.0)
TURN = [{"role": "user", "content": "why " * 30}, {"role": "assistant", "content": "so " * 30}]


def together(works: Sequence[Callable[[], list[int]]]) -> list[list[int]]:
    def run(work: Callable[[], list[int]]) -> list[int]:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(run, work) for work in works]]


def send(service: Service, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = json.dumps({} if body is None else body)
    answer = service.client.generic(method, f"/v1/{path}", data, content_type="application/json", headers={**headers})
    return answer.status_code, json.loads(answer.content) if answer.content else None


def test_one_conversation__appends_pins_compactions_cancels_and_reverts_at_once__sums_and_chain_are_right(
    service: Service,
) -> None:
    path = service.create(policy={"enabled": True, "target": 0}, context_window=2000)
    service.append(path, *TURN)

    def append() -> list[int]:
        return [send(service, "POST", f"{path}/messages", {"messages": TURN})[0] for _ in range(12)]

    def work() -> list[int]:
        for _ in range(80):
            if claim := service.claim():
                jobs.run(claim)
            else:
                time.sleep(0.02)
        return []

    def pin() -> list[int]:
        return [send(service, "PATCH", f"{path}/messages/{1 + n % 2}", {"pinned": n % 3 == 0})[0] for n in range(16)]

    def ask() -> list[int]:
        seen = []
        for n in range(12):
            status, asked = send(service, "POST", f"{path}/compactions", {"preserve_recent_turns": n % 3})
            seen.append(status)
            verb = ("cancel", "revert", None)[n % 3]
            if verb:
                seen.append(send(service, "POST", f"compactions/{asked['id']}/{verb}")[0])
            time.sleep(0.05)
        return seen

    def read() -> list[int]:
        return [send(service, "GET", f"{path}/context")[0] for _ in range(30)]

    appended, *others = together([append, append, append, work, work, pin, ask, read])
    service.work_off()

    assert set(appended) == {201}
    assert max(status for some in others for status in some) < 500
    conversation = path.removeprefix("conversations/")
    assert service.get(path)["message_count"] == len(TURN) * (1 + 3 * 12)
    assert audit(service.tenant_id, conversation, COUNTER) == []
    assert chain_problems(service.tenant_id, conversation) == []
    assert {one["status"] for one in service.compactions(path)} <= {"succeeded", "failed", "cancelled"}


def test_append__one_idempotency_key_from_eight_threads__is_stored_once(service: Service) -> None:
    path = service.create()

    def append() -> list[int]:
        key = {"Idempotency-Key": "one"}
        return [send(service, "POST", f"{path}/messages", {"messages": TURN}, **key)[0]]

    answers = together([append] * 8)

    assert {status for (status,) in answers} <= {201, 409}
    assert service.get(path)["message_count"] == len(TURN)


def test_erase__during_appends_and_a_job__nothing_fails_and_nothing_is_left(service: Service) -> None:
    path = service.create(policy={"enabled": True, "target": 0}, context_window=1000)
    service.append(path, *(TURN * 10))

    def append() -> list[int]:
        return [send(service, "POST", f"{path}/messages", {"messages": TURN})[0] for _ in range(5)]

    def work() -> list[int]:
        if claim := service.claim():
            jobs.run(claim)
        return []

    def erase() -> list[int]:
        time.sleep(0.02)
        return [send(service, "DELETE", path)[0]]

    *appended, _, erased = together([append, append, work, erase])

    assert erased == [200]
    assert {status for some in appended for status in some} <= {201, 404}
    assert service.claim() is None
    service.get(path, status=404)
