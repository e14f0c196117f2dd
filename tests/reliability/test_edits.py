"""Edits while a model call of another process is on its way (semantics 9 and 11)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reliability.cluster import Cluster, until
from tests.reliability.conftest import Scene
from tests.reliability.database import calls
from tests.reliability.load import talk

pytestmark = pytest.mark.reliability


class Running:
    """A compaction whose first call has left and is held back."""

    def __init__(self, cluster: Cluster, scene: Scene) -> None:
        cluster.have_workers(2)
        scene.script("held", "honest")
        self.scene, self.client = scene, scene.client
        self.path = scene.client.create(messages=talk(8))
        self.entry = scene.client.ask(self.path)
        until("the call has left", lambda: scene.calls == 1)

    def let_go(self) -> Any:
        """Release the answer; the log entry once the call is in the ledger too."""
        self.scene.models.release(self.scene.model)
        found = self.client.ended(self.entry)
        until("the call is in the ledger", lambda: calls(self.scene.cluster, self.entry))
        return found


@pytest.fixture
def running(cluster: Cluster, scene: Scene) -> Running:
    return Running(cluster, scene)


def test_message_deleted__in_the_span_of_a_running_compaction__does_not_apply(
    cluster: Cluster, running: Running
) -> None:
    running.client.send("DELETE", f"{running.path}/messages/3")
    assert running.let_go()["outcome"] == "stale"
    assert running.client.idle_context(running.path)["covered"] is None
    until("the cost is in the ledger", lambda: calls(cluster, running.entry) == ["late"])


def test_rewind__into_the_span_of_a_running_compaction__does_not_apply(cluster: Cluster, running: Running) -> None:
    running.client.send("DELETE", f"{running.path}/messages?from=5")
    assert running.let_go()["outcome"] == "stale"
    context = running.client.idle_context(running.path)
    assert (context["covered"], len(context["messages"])) == (None, 4)
    until("the cost is in the ledger", lambda: calls(cluster, running.entry) == ["late"])


def test_pin__in_the_span_of_a_running_compaction__does_not_apply(cluster: Cluster, running: Running) -> None:
    running.client.send("PATCH", f"{running.path}/messages/2", {"pinned": True})
    assert running.let_go()["outcome"] == "stale"
    assert running.client.idle_context(running.path)["covered"] is None
    assert calls(cluster, running.entry) == ["ok"]


def test_fork__of_a_conversation_whose_compaction_runs__is_whole_and_the_run_applies(
    cluster: Cluster, running: Running
) -> None:
    before = running.client.context(running.path)["messages"]
    copied = running.client.post(f"{running.path}/fork", {"position": 16})["id"]
    cluster.forks.add(copied)
    fork = f"/conversations/{copied}"
    assert running.client.context(fork)["messages"] == before
    assert running.let_go()["outcome"] == "applied"
    assert running.client.idle_context(running.path)["covered"]
    assert running.client.context(fork)["messages"] == before


def test_conversation_erased__while_its_compaction_runs__leaves_its_cost_only(
    cluster: Cluster, running: Running
) -> None:
    running.client.send("DELETE", running.path)
    running.scene.models.release(running.scene.model)
    until("the cost is in the ledger", lambda: calls(cluster, running.entry) == ["late"])
    assert running.client.send("GET", running.entry, also=(404,)).status_code == 404
    assert not cluster.sql("select 1 from compactions_work where compaction_id = %s", running.entry.rpartition("/")[2])


def test_cancel__and_ask_again__while_the_call_is_on_its_way__only_the_second_applies(
    cluster: Cluster, running: Running
) -> None:
    running.client.post(f"{running.entry}/cancel")
    again = running.client.ask(running.path)
    assert running.client.ended(again)["outcome"] == "applied"
    assert running.let_go()["outcome"] == "cancelled"
    until("the cost is in the ledger", lambda: calls(cluster, running.entry) == ["late"])
    assert len(running.client.all(f"{running.path}/summaries")) == 1
