"""One worker with four jobs, each at another point of its life, and one SIGKILL (design.md, Races)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from tests.model_server import Control
from tests.reliability import broker
from tests.reliability.cluster import Cluster, until
from tests.reliability.conftest import Scene, scene_of
from tests.reliability.database import calls, locked, until_claimed, until_waiting, work
from tests.reliability.load import talk
from tests.reliability.report import Recoveries

pytestmark = pytest.mark.reliability


@dataclass
class Job:
    """A compaction that was at some point when its worker was killed."""

    scene: Scene
    path: str = ""
    entry: str = ""
    killed_at: float = 0.0

    def begin(self) -> None:
        self.path = self.scene.client.create(messages=talk(8))

    def ask(self) -> None:
        self.entry = self.scene.client.ask(self.path)

    def outcome(self, recoveries: Recoveries) -> Any:
        found = self.scene.client.ended(self.entry)
        recoveries.add(datetime.fromisoformat(found["finished_at"]).timestamp() - self.killed_at)
        return found

    def failed_attempts(self) -> list[int]:
        query = "select attempts from compactions_pass where compaction_id = %s order by number"
        return [row["attempts"] for row in self.scene.cluster.sql(query, self.entry.rpartition("/")[2])]


@dataclass
class Killed:
    before_the_call: Job
    during_the_call: Job
    after_the_answer: Job
    before_the_ack: Job
    unacknowledged: list[bytes]  # messages the killed worker held


@pytest.fixture(scope="module")
def killed(cluster: Cluster, models: Control) -> Killed:
    """Brings one worker's four jobs to their points, kills it, and starts another."""
    [worker] = cluster.have_workers(1)
    before, during, after, ack = jobs = [Job(scene_of(cluster, models)) for _ in range(4)]
    for job in jobs:
        job.begin()
        job.scene.script("held", "honest")
    before.scene.script("honest")
    with ExitStack() as held:
        for job in (during, after, ack):
            job.ask()
        until("three calls have left", lambda: all(job.scene.calls == 1 for job in (during, after, ack)))
        with cluster.frozen(worker):  # so that the lock is there before the claim
            before.ask()
            held.enter_context(locked(cluster, before.path))
        until_claimed(cluster, before.entry)
        until_waiting(cluster, 1)
        held.enter_context(locked(cluster, after.path))
        models.release(after.scene.model)
        until_waiting(cluster, 2)
        held.enter_context(broker.writes_paused(cluster))
        models.release(ack.scene.model)
        until("the apply has been committed", lambda: work(cluster, ack.entry) is None)
        killed_at = cluster.kill_worker(worker)
        for job in jobs:
            job.killed_at = killed_at
    left = broker.unacknowledged(cluster)
    models.release(during.scene.model)  # nobody listens any more
    cluster.start_worker()
    return Killed(before, during, after, ack, left)


def test_worker_killed__before_the_call__the_pass_runs_again_and_calls_once(
    cluster: Cluster, killed: Killed, recoveries: Recoveries
) -> None:
    job = killed.before_the_call
    assert job.outcome(recoveries)["outcome"] == "applied"
    assert (job.scene.calls, calls(cluster, job.entry)) == (1, ["ok"])


def test_worker_killed__during_the_call__another_worker_calls_again(
    cluster: Cluster, killed: Killed, recoveries: Recoveries
) -> None:
    job = killed.during_the_call
    found = job.outcome(recoveries)
    assert (found["outcome"], found["method"]) == ("applied", "llm")
    assert (job.scene.calls, job.failed_attempts()) == (2, [0])
    assert calls(cluster, job.entry) == ["ok"]


def test_worker_killed__between_answer_and_commit__nothing_of_it_is_applied_and_it_runs_again(
    cluster: Cluster, killed: Killed, recoveries: Recoveries
) -> None:
    job = killed.after_the_answer
    found = job.outcome(recoveries)
    assert (found["outcome"], found["method"]) == ("applied", "llm")
    assert (job.scene.calls, job.failed_attempts()) == (2, [0])
    assert len(job.scene.client.all(f"{job.path}/summaries")) == 1


def test_worker_killed__between_apply_and_ack__the_redelivered_message_finds_nothing_to_do(
    cluster: Cluster, killed: Killed
) -> None:
    job = killed.before_the_ack
    context = job.scene.client.context(job.path)
    assert context["covered"]
    assert killed.unacknowledged
    broker.redeliver(cluster, killed.unacknowledged)
    until("the redelivered messages are taken", lambda: broker.waiting(cluster) == 0)
    time.sleep(1)
    assert job.scene.client.get(job.entry)["outcome"] == "applied"
    assert (job.scene.calls, job.failed_attempts()) == (1, [0])
    assert len(job.scene.client.all(f"{job.path}/summaries")) == 1
    assert job.scene.client.context(job.path) == context
