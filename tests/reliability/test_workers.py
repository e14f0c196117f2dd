"""Workers that stop, stall, or are many."""

from __future__ import annotations

import signal
import time
from datetime import datetime
from itertools import pairwise

import pytest

from tests.reliability.cluster import Cluster, until
from tests.reliability.conftest import Scene
from tests.reliability.database import calls, work
from tests.reliability.load import talk
from tests.reliability.report import Recoveries

pytestmark = pytest.mark.reliability

TURNS = 12


def test_worker_stopped__wakes_after_another_took_over__its_result_is_refused_and_its_cost_recorded(
    cluster: Cluster, scene: Scene, recoveries: Recoveries
) -> None:
    [stalled] = cluster.have_workers(1)
    scene.script("held", "honest")
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    until("the call has left", lambda: scene.calls == 1)
    with cluster.frozen(stalled):
        began = time.time()
        scene.models.release(scene.model)  # the answer waits in its socket
        other = cluster.start_worker(stalled + 1, wait=False)
        found = scene.client.ended(entry)
        recoveries.add(datetime.fromisoformat(found["finished_at"]).timestamp() - began)
        context = scene.client.context(path)
    assert (found["outcome"], found["method"], other.popen.poll()) == ("applied", "llm", None)
    until("the late result is in the ledger", lambda: len(calls(cluster, entry)) == 2)
    assert sorted(calls(cluster, entry)) == ["late", "ok"]
    late = scene.client.get(entry)
    assert late["llm_tokens_in"] > found["llm_tokens_in"] > 0
    assert len(scene.client.all(f"{path}/summaries")) == 1
    after = scene.client.context(path)
    assert (after["messages"], after["context_version"]) == (context["messages"], context["context_version"])


def test_worker_stopped__wakes_after_its_lease_and_nobody_took_over__its_result_counts_or_the_pass_runs_again(
    cluster: Cluster, scene: Scene
) -> None:
    [stalled] = cluster.have_workers(1)
    scene.script("held", "honest")
    entry = scene.client.ask(scene.client.create(messages=talk(8)))
    until("the call has left", lambda: scene.calls == 1)
    with cluster.frozen(stalled):
        scene.models.release(scene.model)
        query = "select lease_until < clock_timestamp() as over from compactions_work where compaction_id = %s"
        until("the lease is over", lambda: cluster.sql(query, entry.rpartition("/")[2])[0]["over"])
    assert scene.client.ended(entry)["outcome"] == "applied"
    until("every call is in the ledger", lambda: len(calls(cluster, entry)) == scene.calls)
    assert calls(cluster, entry).count("ok") == 1


def test_worker_asked_to_stop__during_a_call__leaves_by_itself_and_the_job_ends_well(
    cluster: Cluster, scene: Scene
) -> None:
    for number in cluster.have_workers(1):
        cluster.kill_worker(number)
    asked = 1
    cluster.start_worker(asked, forked=False)  # its exit code is looked at
    scene.script("slow:3", "honest")
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    until("the call has left", lambda: scene.calls == 1)
    process = cluster.workers[asked].popen
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0
    cluster.have_workers(1)
    found = scene.client.ended(entry)
    assert (found["outcome"], found["method"]) == ("applied", "llm")
    assert calls(cluster, entry).count("ok") == 1
    assert len(scene.client.all(f"{path}/summaries")) == 1


def test_four_workers__one_conversation__never_two_passes_at_once_and_each_applies_once(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(4)
    scene.models.script(scene.model, "honest", latency=0.3)
    path = scene.client.create(policy={"enabled": True})
    asked = set()
    for number in range(TURNS):
        scene.client.append(path, *talk(1, words=12))
        if number % 3 == 2:
            asked.add(scene.client.ask(path))
    scene.client.idle_context(path)
    log = scene.client.log(path)
    assert {entry["outcome"] for entry in log} <= {"applied", "irreducible", "skipped"}
    ran = [entry for entry in log if entry["outcome"] == "applied"]
    assert len(ran) > 1
    for before, after in pairwise(ran):
        assert before["finished_at"] <= after["started_at"]
    assert scene.calls == sum(len(entry["passes"]) for entry in ran)
    assert [calls(cluster, entry["id"]) for entry in ran] == [["ok"] * len(entry["passes"]) for entry in ran]


def test_all_workers_killed__before_any_claim__the_job_waits_in_the_database(cluster: Cluster, scene: Scene) -> None:
    for worker in cluster.have_workers(1):
        cluster.kill_worker(worker)
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    row = work(cluster, entry)
    assert row is not None
    assert row["fence"] is None
    assert scene.client.context(path)["fits"]
    cluster.have_workers(1)
    assert scene.client.ended(entry)["outcome"] == "applied"
