"""Fifty writers on one conversation."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.reliability.cluster import Cluster
from tests.reliability.conftest import Scene
from tests.reliability.load import turn

pytestmark = pytest.mark.reliability

WRITERS = 50
APPENDS = 3


def test_append__fifty_writers_on_one_conversation__every_position_once_and_every_repeat_answered_alike(
    cluster: Cluster, scene: Scene
) -> None:
    cluster.have_workers(1)
    path = scene.client.create(policy={"enabled": True})
    clients = [cluster.client(scene.client.key) for _ in range(WRITERS)]

    def write(number: int) -> list[tuple[str, list[int]]]:
        done = []
        for one in range(APPENDS):
            mark = uuid.uuid4().hex
            messages = turn(mark, number)
            with ThreadPoolExecutor(2) as twice:  # the same append twice at once, as an impatient client sends it
                answers = [
                    twice.submit(clients[number].append, path, *messages, key=mark) for _ in range(2 if one else 1)
                ]
            [positions] = {tuple(m["position"] for m in answer.result()["messages"]) for answer in answers}
            done.append((mark, list(positions)))
        return done

    with ThreadPoolExecutor(WRITERS) as pool:
        written = [entry for each in pool.map(write, range(WRITERS)) for entry in each]
    positions = sorted(position for _, both in written for position in both)
    assert positions == list(range(1, 2 * WRITERS * APPENDS + 1))
    stored = scene.client.all(f"{path}/messages")
    assert [one["position"] for one in stored] == positions
    requests = {one["position"]: str(one["message"]) for one in stored}
    assert all(second == first + 1 and mark in requests[first] for mark, (first, second) in written)
    scene.client.idle_context(path)
