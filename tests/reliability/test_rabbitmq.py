"""The same with RabbitMQ as the broker, where one is reachable: RABBITMQ_URL, else the usual port.

Where `rabbitmqctl` can be run, a virtual host of the run's own is made and dropped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator

import amqp
import pytest
from kombu import Connection

from compaction_service.compactions.broker import QUEUE
from tests.model_server import Control
from tests.reliability import verdict
from tests.reliability.cluster import Cluster, running_cluster, until
from tests.reliability.conftest import Scene, scene_of
from tests.reliability.database import calls, work
from tests.reliability.load import talk
from tests.stack import DATA_DIR

pytestmark = pytest.mark.reliability

USUAL = "amqp://guest:guest@127.0.0.1:5672/"
CTL = shutil.which("rabbitmqctl")


def control(*arguments: str) -> bool:
    """Run rabbitmqctl; False where it is not there or may not."""
    if CTL is None:
        return False
    return subprocess.run([CTL, "-q", *arguments], capture_output=True, check=False, timeout=120).returncode == 0


def reachable(url: str) -> bool:
    try:
        with Connection(url, connect_timeout=3) as one:
            one.connect()
    except (OSError, amqp.AMQPError):
        return False
    return True


@pytest.fixture(scope="module")
def rabbit() -> Iterator[str]:
    """The URL of a virtual host for this run."""
    given = os.environ.get("RABBITMQ_URL", "")
    if not reachable(given or USUAL):
        pytest.skip("no RabbitMQ: neither RABBITMQ_URL nor the usual port answers")
    host = f"compaction-{uuid.uuid4().hex}"
    if given or not control("add_vhost", host):
        yield given or USUAL
        return
    control("set_permissions", "-p", host, "guest", ".*", ".*", ".*")
    yield f"{USUAL}{host}"
    control("delete_vhost", host)


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config, rabbit: str) -> Iterator[Cluster]:
    """A cluster of its own on that broker; Valkey is its cache only."""
    with running_cluster(pytestconfig.stash[DATA_DIR] / "rabbit", {"BROKER_URL": rabbit}) as made:
        yield made


def purge(rabbit: str) -> int:
    """Drop every waiting message."""
    with Connection(rabbit) as one:
        return int(one.default_channel.queue_purge(QUEUE) or 0)  # type: ignore[attr-defined]


def test_rabbitmq__a_job__is_woken_and_applied(cluster: Cluster, scene: Scene) -> None:
    cluster.have_workers(1)
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    assert scene.client.ended(entry)["outcome"] == "applied"
    assert (scene.calls, calls(cluster, entry)) == (1, ["ok"])


def test_rabbitmq__worker_killed_during_the_call__redelivery_and_lease_give_one_apply(
    cluster: Cluster, scene: Scene
) -> None:
    [worker] = cluster.have_workers(1)
    scene.script("held", "honest")
    path = scene.client.create(messages=talk(8))
    entry = scene.client.ask(path)
    until("the call has left", lambda: scene.calls == 1)
    cluster.kill_worker(worker)  # RabbitMQ sees the lost connection and redelivers at once
    cluster.have_workers(1)
    assert scene.client.ended(entry)["outcome"] == "applied"
    assert (scene.calls, calls(cluster, entry)) == (2, ["ok"])
    assert len(scene.client.all(f"{path}/summaries")) == 1


def test_rabbitmq__messages_lost__the_sweep_sends_them_again(cluster: Cluster, scene: Scene, rabbit: str) -> None:
    [worker] = cluster.have_workers(1)
    path = scene.client.create(messages=talk(8))
    with cluster.frozen(worker):
        entry = scene.client.ask(path)
        time.sleep(0.5)
        purge(rabbit)
        row = work(cluster, entry)
        assert row is not None
        assert row["fence"] is None
    assert scene.client.ended(entry)["outcome"] == "applied"


def test_rabbitmq__its_connections_cut__workers_come_back_and_appends_succeed(
    cluster: Cluster, scene: Scene, rabbit: str
) -> None:
    host = rabbit.rpartition("/")[2]
    if not host or not control("list_connections", "-p", host, "pid"):
        pytest.skip("rabbitmqctl is not there, or may not")
    cluster.have_workers(1)
    scene.script("held", "honest")
    running = scene.client.ask(scene.client.create(messages=talk(8)))
    until("the call has left", lambda: scene.calls == 1)
    control("close_all_connections", "--vhost", host, "a test cuts them")
    queued = scene.client.ask(scene.client.create(messages=talk(8)))
    scene.models.release(scene.model)
    assert [scene.client.ended(entry)["outcome"] for entry in (running, queued)] == ["applied", "applied"]
    assert verdict.until_quiet(cluster) == []


@pytest.fixture
def scene(cluster: Cluster, models: Control) -> Scene:
    return scene_of(cluster, models)
