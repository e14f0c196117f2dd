"""What happens meanwhile (semantics 11): everything here is between the reading and the writing of a pass."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from compaction_service.compactions import claims, jobs, leases, requests, wakeup
from compaction_service.compactions.models import Work
from compaction_service.compactions.steps import Result, Step
from tests.inprocess import Service, service_of
from tests.integration.test_faults import LINE, assert_sound, chat
from tests.model_server import Control

Between = Callable[[Callable[[Step], None]], None]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Have something happen once, between a pass's model call and the writing of its result."""

    def install(act: Callable[[Step], None]) -> None:
        execute = jobs.execute  # type: ignore[attr-defined]
        done: list[bool] = []

        def executed(step: Step) -> Result:
            result = execute(step)
            if not done:
                done.append(True)
                act(step)
            return result

        monkeypatch.setattr(jobs, "execute", executed)

    return install


@pytest.fixture
def scripted(service: Service, models: Control, model: str) -> str:
    """The tenant's summarizer: an honest model of the scripted server."""
    service.summarizer(models, model)
    return model


def turn(text: str) -> list[Any]:
    return [{"role": "user", "content": f"{text}?"}, {"role": "assistant", "content": f"{text}."}]


def parallel(number: int, work: Callable[[int], Any]) -> list[Any]:
    """`work(0)` to `work(number - 1)` at once, each with its own database connection."""

    def one(index: int) -> Any:
        try:
            return work(index)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_append__while_a_summary_is_written__is_stored_at_once_and_kept(
    service: Service, scripted: str, between: Between
) -> None:
    path = chat(service)
    between(lambda _step: service.append(path, *turn("Meanwhile")) and None)
    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    context = service.context(path)
    assert context["messages"][-2:] == turn("Meanwhile")
    assert_sound(service, path)


def test_append__while_a_slow_model_answers__does_not_wait(service: Service, models: Control, model: str) -> None:
    models.script(model, "slow:1.5")
    service.summarizer(models, model)
    path = chat(service)
    service.post(f"{path}/compactions", status=202)
    worker = threading.Thread(target=lambda: parallel(1, lambda _: service.work_off()))
    worker.start()
    while not models.calls(model):
        time.sleep(0.01)
    times = []
    for n in range(5):
        start = time.monotonic()
        service.append(path, *turn(f"Meanwhile {n}"))
        times.append(time.monotonic() - start)
    assert service.get(path)["compaction"]["state"] == "running"
    worker.join()
    assert max(times) < 1.4
    assert service.compactions(path)[-1]["outcome"] == "applied"
    assert service.context(path)["messages"][-1] == turn("Meanwhile 4")[1]


def test_request__one_is_queued__joins_it_and_brings_its_parameters(service: Service, scripted: str) -> None:
    path = chat(service)
    first = service.post(f"{path}/compactions", {"focus": "fares"}, status=202)
    second = service.post(f"{path}/compactions", {"focus": "gates"}, status=202)
    assert (first["joined"], second["joined"], second["id"]) == (False, True, first["id"])
    service.work_off()
    [entry] = service.compactions(path)
    assert (entry["focus"], entry["outcome"]) == ("gates", "applied")


def test_request__one_is_running__joins_it_and_one_follows(service: Service, scripted: str, between: Between) -> None:
    path = chat(service)
    joined: list[Any] = []

    def ask(_step: Step) -> None:
        service.append(path, *turn(LINE * 30), *turn(LINE * 30))
        joined.extend(service.post(f"{path}/compactions", {"focus": f}, status=202) for f in ("fares", "gates"))

    between(ask)
    first = service.compact(path)
    assert [(one["joined"], one["id"]) for one in joined] == [(True, first["id"])] * 2
    entries = service.compactions(path)
    assert [(entry["focus"], entry["outcome"]) for entry in entries] == [(None, "applied"), ("gates", "applied")]
    assert_sound(service, path)


def test_request__two_at_once__one_compaction(service: Service, scripted: str) -> None:
    path = chat(service)
    answers = parallel(6, lambda _: service.post(f"{path}/compactions", status=202))
    assert len({answer["id"] for answer in answers}) == 1
    assert sorted(answer["joined"] for answer in answers) == [False, *[True] * 5]


@pytest.mark.parametrize("enabled", [False, True])
def test_pin__in_the_span_of_a_running_compaction__makes_it_stale(
    service: Service, scripted: str, between: Between, enabled: bool
) -> None:
    path = chat(service, turns=22, policy={"enabled": enabled})
    between(lambda _step: service.patch(f"{path}/messages/2", {"pinned": True}))
    service.compact(path)
    first, *rest = service.compactions(path)
    assert (first["status"], first["outcome"]) == ("failed", "stale")
    assert [call.status for call in service.calls(first["id"])] == ["ok"]  # it was paid for
    if enabled:
        assert [entry["outcome"] for entry in rest] == ["applied"]
        assert 2 in service.context(path)["carried"]
    else:
        assert rest == []
        assert service.context(path)["covered"] is None
    assert_sound(service, path)


def test_cancel__during_a_run__the_late_result_is_refused_and_its_cost_kept(
    service: Service, scripted: str, between: Between
) -> None:
    path = chat(service)
    before = service.context(path)["messages"]
    asked = service.post(f"{path}/compactions", status=202)
    between(lambda _step: service.post(f"compactions/{asked['id']}/cancel", status=200))
    service.work_off()
    entry = service.get(f"compactions/{asked['id']}")
    assert (entry["status"], entry["outcome"]) == ("cancelled", "cancelled")
    assert [one["status"] for one in entry["passes"]] == ["failed"]
    assert [(call.status, call.tokens_in > 0) for call in service.calls(asked["id"])] == [("late", True)]
    assert service.context(path)["messages"] == before
    service.post(f"compactions/{asked['id']}/cancel", status=409)
    assert service.compact(path)["outcome"] == "applied"


def test_cancel__between_claim_and_begin__nothing_is_run(service: Service, scripted: str, models: Control) -> None:
    path = chat(service)
    asked = service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim
    service.post(f"compactions/{asked['id']}/cancel", status=200)
    jobs.run(claim)
    assert models.calls(scripted) == []
    assert service.get(f"compactions/{asked['id']}")["outcome"] == "cancelled"


def test_erase__during_a_run__leaves_nothing(service: Service, scripted: str, between: Between) -> None:
    path = chat(service)
    between(lambda _step: service.call("DELETE", path))
    asked = service.post(f"{path}/compactions", status=202)
    service.work_off()
    service.get(path, status=404)
    service.get(f"compactions/{asked['id']}", status=404)
    assert not Work.objects.filter(tenant_id=service.tenant_id).exists()
    assert [call.status for call in service.calls(asked["id"])] == ["late"]


def test_append__twenty_at_once__every_position_once(service: Service) -> None:
    path = service.create()
    answers = parallel(10, lambda n: [service.append(path, *turn(f"{n}.{k}")) for k in range(2)])
    positions = [one["position"] for pair in answers for done in pair for one in done["messages"]]
    assert sorted(positions) == list(range(1, 41))
    stored = service.get(f"{path}/messages?limit=100")["data"]
    assert [one["position"] for one in stored] == list(range(1, 41))
    assert_sound(service, path)


def test_append__same_expected_position_at_once__one_wins(service: Service) -> None:
    path = service.create(messages=turn("First"))
    body = {"messages": turn("Next"), "expected_last_position": 2}
    answers = parallel(6, lambda _: service.post(f"{path}/messages", body, status=None))
    won = [answer for answer in answers if "errors" not in answer]
    lost = [answer for answer in answers if "errors" in answer]
    assert len(won) == 1
    assert {answer["errors"][0]["code"] for answer in lost} == {"position_conflict"}


def test_claim__many_workers_one_row__one_gets_it(service: Service, scripted: str) -> None:
    path = chat(service)
    service.post(f"{path}/compactions", status=202)
    taken = [claim for claim in parallel(8, lambda _: claims.claim()) if claim]
    assert len(taken) == 1


def test_lease__worker_stalls_beyond_it__another_takes_over_and_the_first_is_refused(
    service: Service, scripted: str, models: Control, between: Between
) -> None:
    path = chat(service)

    def stall(_step: Step) -> None:
        service.clock.forward(leases.LEASE + timedelta(seconds=1))
        assert service.work_off() == 1

    between(stall)
    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    assert len(models.calls(scripted)) == 2
    assert sorted(call.status for call in service.calls(entry["id"])) == ["late", "ok"]
    assert len(service.get(f"{path}/summaries")["data"]) == 1
    assert_sound(service, path)


def test_lease__heartbeat__keeps_a_long_call_from_being_taken(
    service: Service, scripted: str, monkeypatch: pytest.MonkeyPatch, between: Between
) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT", 0.05)
    monkeypatch.setattr(leases, "_beat", None)  # one that an earlier test left still waits at the old pace
    path = chat(service)
    taken: list[Any] = []

    def long_call(_step: Step) -> None:
        for _ in range(4):
            service.clock.forward(leases.LEASE * 0.7)
            time.sleep(0.3)
            taken.append(claims.claim())

    between(long_call)
    assert service.compact(path)["outcome"] == "applied"
    assert taken == [None] * 4


def test_worker__killed_before_the_call__the_pass_runs_after_the_lease(service: Service, scripted: str) -> None:
    path = chat(service)
    service.post(f"{path}/compactions", status=202)
    assert service.claim()  # and nothing more: killed
    assert service.work_off(wait=False) == 0
    service.clock.forward(leases.LEASE)
    service.work_off()
    assert service.compactions(path)[-1]["outcome"] == "applied"


def test_worker__killed_every_time__the_model_is_given_up(
    service: Service, scripted: str, models: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat(service)
    asked = service.post(f"{path}/compactions", status=202)
    execute = jobs.execute  # type: ignore[attr-defined]

    def killed(step: Step) -> Result:
        if step.model is not None:
            raise MemoryError("the worker's machine is gone")
        return execute(step)

    monkeypatch.setattr(jobs, "execute", killed)
    crashes = 0
    for _ in range(20):
        try:
            if not service.work_off():
                break
        except jobs.Crashed:
            crashes += 1
    entry = service.get(f"compactions/{asked['id']}")
    assert crashes == jobs.MOST_ATTEMPTS
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "extractive", "worker_lost")


def test_worker__crash_between_passes__only_that_pass_is_repeated(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.script(model, ["fixed_tokens:900", "fixed_tokens:100"])
    service.summarizer(models, model)
    path = chat(service, policy={"summary_max_tokens": 200})
    execute = jobs.execute  # type: ignore[attr-defined]
    crashed: list[Step] = []

    def crash_once(step: Step) -> Result:
        result = execute(step)
        if step.number == 2 and not crashed:
            crashed.append(step)
            raise RuntimeError("gone")
        return result

    monkeypatch.setattr(jobs, "execute", crash_once)
    asked = service.post(f"{path}/compactions", status=202)
    with pytest.raises(jobs.Crashed):
        service.work_off()
    service.work_off()
    entry = service.get(f"compactions/{asked['id']}")
    assert entry["outcome"] == "applied"
    assert [(one["kind"], one["status"]) for one in entry["passes"]] == [
        ("summary", "succeeded"), ("resummarize", "succeeded"),
    ]  # fmt: skip
    assert len(models.calls(model)) == 3


def test_run__of_a_compaction_that_ended__changes_nothing(service: Service, scripted: str, models: Control) -> None:
    path = chat(service)
    service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim
    jobs.run(claim)
    context = service.context(path)
    jobs.run(claim)
    assert service.context(path) == context
    assert len(models.calls(scripted)) == 1


def test_append__broker_away__is_stored_and_the_sweep_wakes_a_worker(
    service: Service, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from worker import tasks

    settings.BROKER_URL = "redis://127.0.0.1:9/0"
    wakeup._sender.cache_clear()
    monkeypatch.setattr(requests, "wake", wakeup.wake)
    path = service.create(policy={"enabled": True, "max_tokens": 500})
    start = time.monotonic()
    done = service.append(path, *turn(LINE * 20), *turn(LINE * 20))
    assert time.monotonic() - start < 5
    assert done["compaction"]["status"] == "queued"
    sent: list[int] = []
    monkeypatch.setattr(wakeup, "wake", lambda count=1, **_: sent.append(count))
    tasks.sweep()
    assert sent
    assert sent[0] >= 1
    tasks.run()
    assert service.compactions(path)[0]["outcome"] == "applied"
    wakeup._sender.cache_clear()


def test_everything_at_once__no_deadlock_no_server_error_and_sums_that_add_up(
    make_tenant: Callable[[], Any], clock: Any, models: Control, model: str
) -> None:
    member = make_tenant()
    service = service_of(member, clock)
    service.summarizer(models, model)
    path = chat(service, turns=8, policy={"enabled": True, "max_tokens": 2500, "mask_min_reclaim_tokens": 0})
    stop = time.monotonic() + 4
    odd: list[Any] = []

    def act(number: int) -> None:
        mine, dice = service_of(member, clock), random.Random(number)  # noqa: S311
        while time.monotonic() < stop:
            try:
                odd.extend(one_act(mine, path, number, dice))
            except jobs.Crashed as crash:
                odd.append(crash)

    parallel(8, act)
    assert odd == []
    service.work_off()
    assert_sound(service, path)
    assert service.get(path)["compaction"]["state"] == "idle"


EXPECTED = ("not_live", "not_newest", "already_reverted", "compaction_live", "context_overflow")


def one_act(service: Service, path: str, number: int, dice: random.Random) -> list[Any]:
    """Something one of many clients or workers does; what must not come back."""
    if number < 2:
        service.work_off(wait=False)
        return []
    choice = dice.randrange(8)
    log = service.get(f"compactions?limit=3&conversation={path.removeprefix('conversations/')}", status=None)
    newest = log["data"][0]["id"] if log.get("data") else None
    if choice < 3:
        answer = service.post(f"{path}/messages", {"messages": turn(LINE * 5)}, status=None)
    elif choice == 3:
        answer = service.patch(f"{path}/messages/{dice.randrange(1, 12)}", {"pinned": dice.random() < 0.3}, status=None)
    elif choice == 4:
        answer = service.post(f"{path}/compactions", {"focus": "x"}, status=None)
    elif choice == 5 and newest:
        answer = service.post(f"compactions/{newest}/cancel", status=None)
    elif choice == 6 and newest:
        answer = service.post(f"compactions/{newest}/revert", status=None)
    else:
        answer = service.get(f"{path}/context", status=None)
    codes = [error["code"] for error in answer.get("errors", ())]
    return [code for code in codes if code not in EXPECTED]


def test_erase__while_others_work_on_it__no_server_error(
    make_tenant: Callable[[], Any], clock: Any, models: Control, model: str
) -> None:
    member = make_tenant()
    service_of(member, clock).summarizer(models, model)
    for round_ in range(3):
        service = service_of(member, clock)
        path = chat(service, turns=6, policy={"enabled": True, "max_tokens": 1500})
        odd: list[Any] = []

        def act(number: int, path: str = path, odd: list[Any] = odd, round_: int = round_) -> None:
            mine, dice = service_of(member, clock), random.Random(number + 100 * round_)  # noqa: S311
            for turn_ in range(12):
                if number == 7 and turn_ == 6:
                    mine.call("DELETE", path, status=None)
                try:
                    odd.extend(code for code in one_act(mine, path, number, dice) if code != "not_found")
                except jobs.Crashed as crash:
                    odd.append(crash)

        parallel(8, act)
        service.get(path, status=404)
        service.work_off()
        assert odd == []
        assert not Work.objects.filter(tenant_id=member.id).exists()
