"""Random faults under load, and what is counted afterwards. KILLS: how many kills of workers. SEED: repeats a run."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import Control
from tests.reliability import report, verdict
from tests.reliability.cluster import Cluster
from tests.reliability.conftest import Scene, scene_of
from tests.reliability.faults import WORKERS, Chaos, planned
from tests.reliability.load import PATIENCE_S, Ledger, Writer, finish
from tests.reliability.report import Figure, Recoveries
from tests.reliability.watch import Watch

pytestmark = pytest.mark.reliability

KILLS = int(os.environ.get("KILLS", "200"))
SEED = int(os.environ.get("SEED") or 0) or secrets.randbelow(10**6)
LIMIT_S = float(os.environ.get("LIMIT_S") or 3600)  # a slow machine gets fewer faults, not a longer run
LATENCIES = (0.5, 2.0, 4.0)  # seconds of the tenants' models
WRITERS = 2  # of each tenant
SHARED = 2  # conversations that all writers of a tenant append to
POLICY = {"enabled": True}


@pytest.mark.timeout(7200)
def test_service__random_kills_under_load__loses_nothing_doubles_nothing_and_nothing_is_stuck(
    cluster: Cluster, models: Control
) -> None:
    faults = planned(KILLS, SEED)
    cluster.have_workers(WORKERS)
    writers, stop = begin(cluster, models)
    watch = Watch(cluster)
    chaos = Chaos(cluster, int(models.url.rpartition(":")[2]), random.Random(SEED))  # noqa: S311 -- repeatable
    began = time.monotonic()
    watch.start()
    for writer in writers:
        writer.start()
    try:
        chaos.run(faults, LIMIT_S)
    finally:
        lasted = time.monotonic() - began
        gave_up = finish(writers, stop)
        cluster.forks.update(fork for one in writers for fork in one.forks)
        cluster.have_workers(WORKERS)
    stuck = verdict.until_quiet(cluster)
    watch.over.set()
    watch.join()

    found = owed(writers)
    doubled, problems = verdict.double_applied(cluster), verdict.unsound(cluster)
    recovered, cut = recoveries_of(cluster, watch, chaos)
    lost, twice = found["lost"] + found["changed"] + found["risen"], found["doubled"] + doubled
    figures = {
        "lost_appends": Figure(len(lost), "", {"of": acknowledged(writers)}),
        "double_applied": Figure(len(twice), "", {"found": twice[:20]}),
        "stuck": Figure(len(stuck), "", {"found": stuck[:20]}),
        "recovery_s": Figure(recovered.spread().get("max", 0), "s", {**recovered.spread(), "jobs": cut}),
    }
    facts = facts_of(cluster, writers, lasted)
    report.write(figures)
    report.show(figures, dict(chaos.done), facts)
    assert (lost, twice, stuck, problems, gave_up) == ([], [], [], {}, []), f"SEED={SEED} KILLS={KILLS}"


def begin(cluster: Cluster, models: Control) -> tuple[list[Writer], threading.Event]:
    """The writers of four tenants: three with models of different latencies, one without a model."""
    stop, writers = threading.Event(), []
    for number, latency in enumerate([*LATENCIES, None]):
        scene = scene_of(cluster, models)
        if latency is None:
            scene.client.send("PATCH", "/tenant", {"summarizer": {"model": None, "fallback_models": None}})
        else:
            models.script(scene.model, "honest", latency=latency)
        shared = [_conversation(scene) for _ in range(SHARED)]
        for one in range(WRITERS):
            client = cluster.client(scene.client.key)
            client.patience_s = PATIENCE_S
            writers.append(Writer(client, shared, _conversation(scene), SEED + number * WRITERS + one, stop))
    return writers, stop


def _conversation(scene: Scene) -> Ledger:
    return Ledger(scene.client.create(policy=POLICY))


def owed(writers: list[Writer]) -> dict[str, list[str]]:
    """The ledgers against what the API shows."""
    found: dict[str, list[str]] = {"lost": [], "doubled": [], "changed": [], "risen": []}
    ledgers = {id(ledger): (ledger, one.client) for one in writers for ledger in (*one.shared, one.own)}
    for ledger, client in ledgers.values():
        for name, problems in ledger.problems(client.all(f"{ledger.path}/messages")).items():
            found[name] += problems
    return found


def acknowledged(writers: list[Writer]) -> int:
    """Appends that were answered."""
    ledgers = {id(ledger): ledger for one in writers for ledger in (*one.shared, one.own)}
    return sum(len(ledger.owed) for ledger in ledgers.values())


def recoveries_of(cluster: Cluster, watch: Watch, chaos: Chaos) -> tuple[Recoveries, dict[str, int]]:
    """From the kill that cut a job off last to its final outcome; how many jobs were cut off by what."""
    ends = {
        row["id"]: row["ended"]
        for row in cluster.sql(
            "select id, extract(epoch from finished_at)::float8 as ended from compactions_compaction"
        )
    }
    recovered, cut = Recoveries([*report.recoveries.seconds]), Counter({"killed": 0, "otherwise": 0})
    last: dict[Any, float] = {}
    for one in watch.interrupted():
        # The earliest kill since the job's holder was last heard of: rather too early than too late.
        kill = next((kill for kill in chaos.kills if one.since - 0.5 <= kill <= one.taken), None)
        cut["otherwise" if kill is None else "killed"] += 1
        if kill is not None:
            last[one.compaction] = max(kill, last.get(one.compaction, 0.0))
    for compaction, kill in last.items():
        if ended := ends.get(compaction):
            recovered.add(ended - kill)
    return recovered, dict(cut)


def facts_of(cluster: Cluster, writers: list[Writer], lasted: float) -> dict[str, Any]:
    did = sum((one.did for one in writers), Counter())
    outcomes = cluster.sql(
        "select outcome, method, count(*) as n from compactions_compaction group by 1, 2 order by 1, 2"
    )
    calls = cluster.sql("select status, count(*) as n from usage_call group by 1 order by 1")
    sent = [sum(getattr(one.client, name) for one in writers) for name in ("attempts", "lost", "refused")]
    return {
        "seed": SEED,
        "lasted": f"{lasted:.0f} s",
        "clients did": dict(did),
        "requests": f"{sent[0]} sent, {sent[1]} without an answer, {sent[2]} answered with 503; all were sent again",
        "compactions": {f"{row['outcome']} {row['method']}".strip(): row["n"] for row in outcomes},
        "calls": {row["status"]: row["n"] for row in calls},
        "logged": logged(cluster.stack.data_dir / "log"),
    }


def logged(folder: Path) -> dict[str, int]:
    """What processes complained of, by kind: errors nobody expects would show here."""
    found: Counter[str] = Counter()
    for log in folder.iterdir():
        for line in log.read_text(errors="replace").splitlines():
            if '"level": "error"' in line or '"level": "critical"' in line:
                entry = json.loads(line)
                what = re.sub(r"[0-9a-f-]{8,}|\d+", "N", entry["message"].splitlines()[0])[:90]
                found[
                    f"{log.name.partition('-')[0].removesuffix('.log')}: {what} {entry.get('error', '')}".strip()
                ] += 1
            elif line.startswith("Traceback"):
                found[f"{log.name.partition('-')[0]}: a traceback"] += 1
    return dict(found.most_common(20))
