from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from compaction_service.local.stack import DATA_DIR as KEPT
from tests.model_server import Control, spawned
from tests.reliability import report, verdict
from tests.reliability.client import Client
from tests.reliability.cluster import Cluster, running_cluster
from tests.reliability.report import Recoveries
from tests.stack import DATA_DIR

LOGS = KEPT / "reliability-log"


@pytest.fixture(scope="session")
def models() -> Iterator[Control]:
    """The scripted model server, in a process of its own: it survives everybody."""
    with spawned() as control:
        yield control


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The cluster that is killed. Its logs are kept until the next run."""
    folder = pytestconfig.stash[DATA_DIR] / "cluster"
    with running_cluster(folder) as made:
        yield made
    shutil.rmtree(LOGS, ignore_errors=True)
    shutil.copytree(folder / "log", LOGS)


@pytest.fixture(scope="session")
def recoveries() -> Recoveries:
    """Seconds from a kill to the final outcome, of every chosen kill; the random run reports them with its own."""
    return report.recoveries


@dataclass
class Scene:
    """A tenant of one test with a summarizer of its own."""

    cluster: Cluster
    models: Control
    client: Client
    model: str

    def script(self, *behaviours: str) -> None:
        self.models.script(self.model, list(behaviours))

    @property
    def calls(self) -> int:
        """Calls that reached the model so far."""
        return len(self.models.calls(self.model))


def scene_of(cluster: Cluster, models: Control) -> Scene:
    accounts = cluster.stack.accounts
    platform = cluster.client(accounts["platform_key"])
    made = platform.post("/admin/tenants", {"name": f"test-{uuid.uuid4().hex}"})
    client = cluster.client(made["key"])
    name = f"scripted-{uuid.uuid4().hex}"
    given = {"model": name, "api_base": models.base_url, "api_key": models.key}
    client.send("PATCH", "/tenant", {"summarizer": given})
    return Scene(cluster, models, client, name)


@pytest.fixture
def scene(cluster: Cluster, models: Control) -> Scene:
    return scene_of(cluster, models)


@pytest.fixture(scope="module", autouse=True)
def _sound(cluster: Cluster) -> Iterator[None]:
    """After each module: nothing is stuck, applied twice, or unlike what its rows say."""
    yield
    cluster.have_workers(max(1, len(cluster.workers)))
    assert verdict.until_quiet(cluster) == []
    assert verdict.double_applied(cluster) == []
    assert verdict.unsound(cluster) == {}
