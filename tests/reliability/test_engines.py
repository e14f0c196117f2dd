"""Restarts of PostgreSQL and the broker, and FLUSHALL, each with jobs at chosen points."""

from __future__ import annotations

import threading
import uuid

import pytest

from tests.reliability import broker
from tests.reliability.cluster import Cluster, until
from tests.reliability.conftest import Scene
from tests.reliability.database import calls, work
from tests.reliability.load import Ledger, Writer, finish, talk

pytestmark = pytest.mark.reliability

CONNECTED = "Connected to redis"


def test_database_restarted__during_a_call__the_answer_is_used_or_asked_for_again(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(1)
    scene.script("held", "honest")
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    until("the call has left", lambda: scene.calls == 1)
    cluster.restart_postgres(down_s=1)
    scene.models.release(scene.model)
    found = scene.client.ended(entry)
    assert (found["outcome"], found["method"]) == ("applied", "llm")
    assert calls(cluster, entry).count("ok") == 1
    assert scene.client.idle_context(path)["covered"]


def test_database_restarted__with_clients_at_work__they_are_told_503_and_nothing_is_lost(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(1)
    shared, stop = Ledger(scene.client.create(policy={"enabled": True})), threading.Event()
    writers = []
    for number in range(4):
        own = Ledger(scene.client.create())
        client = cluster.client(scene.client.key)
        writers.append(Writer(client, [shared], own, number, stop, pause=(0.0, 0.05)))
        writers[-1].start()
    for _ in range(2):
        until_more(shared)
        cluster.restart_postgres(down_s=1)
    until_more(shared)
    assert finish(writers, stop) == []
    cluster.forks.update(fork for one in writers for fork in one.forks)
    for ledger in (shared, *(one.own for one in writers)):
        assert not any(ledger.problems(scene.client.all(f"{ledger.path}/messages")).values())
    assert sum(one.client.lost + one.client.refused for one in writers)
    assert not any(one.client.statuses for one in writers)


def until_more(ledger: Ledger) -> None:
    before = len(ledger.owed)
    until("more was appended", lambda: len(ledger.owed) > before + 10)


def test_broker_killed__appends_and_requests_meanwhile__succeed_and_are_worked_off_later(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(1)
    path = scene.client.create(messages=talk(8))
    argv = cluster.kill_broker()
    try:
        scene.client.append(path, *talk(1))
        entry = scene.client.ask(path)
        assert scene.client.get(entry)["status"] == "queued"
        assert scene.client.context(path)["fits"]
        assert scene.client.refused == 0
    finally:
        cluster.start_broker(argv)
    assert scene.client.ended(entry)["outcome"] == "applied"


def test_broker_flushed__with_jobs_queued_and_running__all_end(cluster: Cluster, scene: Scene) -> None:
    [worker] = cluster.have_workers(1)
    scene.script("held", "honest")
    running = scene.client.ask(scene.client.create(messages=talk(8)))
    until("the call has left", lambda: scene.calls == 1)
    with cluster.frozen(worker):
        queued = scene.client.ask(scene.client.create(messages=talk(8)))
        broker.flush(cluster)
        row = work(cluster, queued)
        assert row is not None
        assert row["fence"] is None
    scene.models.release(scene.model)
    assert [scene.client.ended(entry)["outcome"] for entry in (running, queued)] == ["applied", "applied"]
    assert [calls(cluster, entry) for entry in (running, queued)] == [["ok"], ["ok"]]


def test_messages__doubled_and_reordered__change_nothing(cluster: Cluster, scene: Scene) -> None:
    [worker] = cluster.have_workers(1)
    paths = [scene.client.create(messages=talk(8)) for _ in range(6)]
    with cluster.frozen(worker):
        entries = [scene.client.ask(path) for path in paths]
        doubled = broker.multiply(cluster, 20, reorder=uuid.uuid4().int)
        assert doubled >= 20 * (len(entries) - 1)  # one may have gone to the frozen worker already
    assert [scene.client.ended(entry)["outcome"] for entry in entries] == ["applied"] * 6
    until("every message is taken", lambda: broker.waiting(cluster) == 0)
    assert scene.calls == 6
    assert [calls(cluster, entry) for entry in entries] == [["ok"]] * 6


def test_broker_killed__during_a_call__the_worker_goes_on_afterwards(cluster: Cluster, scene: Scene) -> None:
    """The wake-up of the call is acknowledged late, on a connection that is gone (worker/requests.py)."""
    [worker] = cluster.have_workers(1)
    process = cluster.workers[worker]
    scene.script("held", "honest")
    entry = scene.client.ask(scene.client.create(messages=talk(8)))
    until("the call has left", lambda: scene.calls == 1)
    connected = process.log.read_text().count(CONNECTED)
    cluster.start_broker(cluster.kill_broker())
    until("the worker is connected again", lambda: process.log.read_text().count(CONNECTED) > connected)
    scene.models.release(scene.model)
    assert scene.client.ended(entry)["outcome"] == "applied"
    again = scene.client.ask(scene.client.create(messages=talk(8)))
    assert scene.client.ended(again)["outcome"] == "applied"
    assert cluster.workers[worker] is process
    assert "Unrecoverable" not in process.log.read_text()
