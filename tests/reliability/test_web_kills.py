"""SIGKILL of web at chosen points of an append; the client sends again under the same Idempotency-Key."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.reliability import broker
from tests.reliability.cluster import Cluster, until
from tests.reliability.conftest import Scene
from tests.reliability.database import locked, until_waiting
from tests.reliability.load import MARK, talk, turn

pytestmark = pytest.mark.reliability

TRIES = 5


class Sending(threading.Thread):
    """An append on its way: sent again until it is answered."""

    def __init__(self, scene: Scene, path: str, messages: list[Any]) -> None:
        super().__init__(daemon=True)
        self.client, self.path, self.messages = scene.client, path, messages
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        key = uuid.uuid4().hex
        self.answer = self.client.send("POST", f"{self.path}/messages", {"messages": self.messages}, key=key)

    def answered(self) -> Any:
        self.join(180)
        assert self.answer is not None
        return self.answer


def stored(scene: Scene, path: str) -> list[str]:
    """The marks of what is stored, by position."""
    return [mark for one in scene.client.all(f"{path}/messages") for mark in MARK.findall(str(one["message"]))]


@pytest.mark.parametrize("master", [True, False])
def test_web_killed__before_the_append_commits__the_repeat_stores_it_once(
    cluster: Cluster, scene: Scene, master: bool
) -> None:
    path = scene.client.create(messages=talk(1))
    before = stored(scene, path)
    mark = uuid.uuid4().hex
    with locked(cluster, path):
        sending = Sending(scene, path, turn(mark))
        until_waiting(cluster)
        cluster.kill_web(master=master)
        until("the answer is lost", lambda: scene.client.lost)
    if master:
        cluster.start_web(wait=False)
    assert [one["position"] for one in sending.answered().json()["messages"]] == [3, 4]
    assert stored(scene, path) == [*before, mark]


def test_web_killed__between_the_commit_and_the_answer__the_repeat_is_the_stored_answer(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(1)
    for _ in range(TRIES):  # the moment is as long as a wake-up waits for the broker: a second at most
        path = scene.client.create(policy={"enabled": True}, messages=talk(7))
        before = stored(scene, path)
        mark = uuid.uuid4().hex
        with broker.frozen(cluster), committed(cluster, path) as count:
            sending = Sending(scene, path, turn(mark, words=30))
            until_equal(count, 16)
            cluster.kill_web()
        cluster.start_web(wait=False)
        answer = sending.answered()
        assert stored(scene, path) == [*before, mark]
        assert answer.json()["compaction"] is not None
        assert scene.client.idle_context(path)["covered"]
        if "Idempotency-Replayed" in answer.headers:
            return
    pytest.skip("each answer was sent before the kill: the machine is too slow for this moment")


def until_equal(look: Callable[[], int], wanted: int) -> None:
    until(f"{wanted} are stored", lambda: look() == wanted, every=0.002)


@contextmanager
def committed(cluster: Cluster, path: str) -> Iterator[Callable[[], int]]:
    """Asks how many messages of a conversation are stored, over a connection that is open already."""
    query = "select count(*) from conversations_message where conversation_id = %s"
    with psycopg.connect(cluster.owner_url, autocommit=True) as connection:

        def look() -> int:
            row = connection.execute(query, [path.rpartition("/")[2]]).fetchone()
            return int(row[0]) if row else 0

        yield look
