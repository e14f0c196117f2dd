"""A worker that is told to stop: what runs may end, and what does not end in time is another's at once."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from compaction_service.compactions import leases, wakeup
from compaction_service.compactions.models import Work
from compaction_service.local.stack import Stack
from tests.inprocess import Service
from tests.integration.test_faults import chat
from tests.integration.test_live import appended, created
from tests.integration.test_races import turn
from tests.model_server import Control, spawned
from worker import limits, stopping, tasks

LINE = "In step {n} the agent changed src/module_{n}.py because test_{n} failed and the user wanted it mended. "


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A process that is not stopping yet; the wake-ups it sends."""
    sent: list[int] = []
    monkeypatch.setattr(stopping, "_stopping", threading.Event())
    monkeypatch.setattr(wakeup, "wake", lambda count=1, **_: sent.append(count))
    return sent


def test_stop__pass_outlasts_the_grace__its_row_is_handed_back_and_the_execution_not_counted(
    service: Service, fresh: list[int]
) -> None:
    asked = service.post(f"{chat(service)}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with leases.held(claim):
        stopping.begin(0.2)
        until(lambda: fresh == [1])
        row = Work.objects.get(pk=asked["id"])
        assert (row.fence, row.lease_until, row.attempts) == (None, None, 0)
        again = service.claim()  # at once, not after the lease
        assert again is not None
        assert again.fence != claim.fence


def test_stop__pass_ends_within_the_grace__nothing_is_handed_back(service: Service, fresh: list[int]) -> None:
    asked = service.post(f"{chat(service)}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with leases.held(claim):
        stopping.begin(30)
    until(lambda: not any(thread.name == "hand-back" for thread in threading.enumerate()))
    assert fresh == []
    assert Work.objects.get(pk=asked["id"]).fence == claim.fence


def test_run__process_is_stopping__takes_nothing_and_passes_the_wake_up_on(service: Service, fresh: list[int]) -> None:
    asked = service.post(f"{chat(service)}/compactions", status=202)
    stopping.begin(30)
    tasks.run()
    assert fresh == [1]
    assert Work.objects.get(pk=asked["id"]).fence is None


def test_tasks__messages_of_another_version__are_taken() -> None:
    tasks.sweep("an argument", of="another version")


def until(met: Any, most: float = 20) -> None:
    end = time.monotonic() + most
    while not met():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def outside() -> Iterator[Control]:
    with spawned() as control:
        yield control


def test_worker__sigterm_during_a_call__ends_it_and_then_itself(
    api: httpx.Client, live: Stack, outside: Control
) -> None:
    name = f"scripted-{uuid.uuid4().hex}"
    given = {"model": name, "api_base": outside.base_url, "api_key": outside.key}
    assert api.patch("/tenant", json={"summarizer": given}).status_code == 200
    outside.script(name, "slow:3")
    path = created(api)
    for n in range(6):
        appended(api, path, *turn(f"{n}. {LINE * 3}"))
    asked = api.post(f"{path}/compactions", json={}).json()
    until(lambda: len(outside.calls(name)) == 1, most=120)  # it may just have started
    worker = live.services["worker"].popen
    worker.terminate()
    try:
        assert worker.wait(60) == 0
        done = api.get(f"/compactions/{asked['id']}").json()
        assert (done["outcome"], done["method"]) == ("applied", "llm")
        assert len(outside.calls(name)) == 1
    finally:
        live.start("worker")


def test_times__that_do_not_hold_together__are_refused(settings: Any) -> None:
    from compaction_service.checks import check_settings, wrong_times

    assert wrong_times() == []
    limits.check()
    settings.PASS_DEADLINE = settings.MODEL_CALL_TIMEOUT
    assert wrong_times() == ["MODEL_CALL_TIMEOUT must be less than PASS_DEADLINE."]
    assert "compaction.E004" in [error.id for error in check_settings()]
    settings.PASS_DEADLINE = settings.BROKER_REDELIVERY - 1
    with pytest.raises(ValueError, match="BROKER_REDELIVERY"):
        limits.check()


def test_heartbeat__pass_beyond_its_deadline__gives_the_lease_up(
    service: Service, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[uuid.UUID]] = []
    monkeypatch.setattr(leases, "HEARTBEAT", 0.05)
    monkeypatch.setattr(leases, "_beat", None)
    monkeypatch.setattr(leases, "extend", kept.append)
    settings.PASS_DEADLINE = 1
    service.post(f"{chat(service)}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with leases.held(claim):
        until(lambda: [claim.fence] in kept)
        until(lambda: kept[-1] == [])
