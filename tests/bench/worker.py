"""Figures of one worker process.

The load: 1,000 compactions of one tenant, of one call each to a model that takes 2 s, queued before the worker starts;
half-way another tenant asks for one. Calls are counted and timed where they arrive, at the model.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from compaction_service.local.stack import Stack
from tests.bench.figures import Figure, Figures, rounded
from tests.bench.service import Bench
from tests.model_server import Control, spawned

JOBS = int(os.environ.get("BENCH_JOBS", "1000"))
LATENCY = 2.0  # seconds of one call
SLOTS = 64  # calls at once that the targets speak of
WAKES, LOST = 15, 5
LINE = "In step {n} the agent changed src/module_{n}.py because test_{n} failed and the user wanted it mended. "


@dataclass(eq=False)
class Loaded:
    """A running service, its model, and two tenants' clients."""

    stack: Stack
    model: Control
    many: httpx.Client
    other: httpx.Client


@contextmanager
def loaded(bench: Bench) -> Iterator[Loaded]:
    """The service with a model as a process of its own; this process only asks and looks."""
    with spawned() as model, ExitStack() as opened:
        many, other = (opened.enter_context(closing(_tenant(bench.stack, model))) for _ in range(2))
        yield Loaded(bench.stack, model, many, other)


def _tenant(stack: Any, model: Control) -> httpx.Client:
    """A client of a new tenant, whose limit is the worker's and not its own."""
    admin = {"Authorization": f"Bearer {stack.accounts['platform_key']}"}
    given = {"name": f"bench-{uuid.uuid4()}", "limits": {"compactions_in_flight": 10_000}}
    made = httpx.post(f"{stack.base_url}/v1/admin/tenants", json=given, headers=admin).raise_for_status().json()
    client = httpx.Client(
        base_url=f"{stack.base_url}/v1", headers={"Authorization": f"Bearer {made['key']}"}, timeout=120
    )
    summarizer = {"model": "bench", "api_base": model.base_url, "api_key": model.key}
    client.patch("/tenant", json={"summarizer": summarizer}).raise_for_status()
    return client


def _conversation(client: httpx.Client, n: int, **fields: Any) -> str:
    text = "".join(LINE.replace("{n}", str(n * 100 + k)) for k in range(12))
    messages = [{"role": role, "content": text} for _ in range(3) for role in ("user", "assistant")]
    given = {"model": "gpt-4o", "context_window": 8000, "messages": messages, **fields}
    made: str = client.post("/conversations", json=given).raise_for_status().json()["id"]
    return made


def _ask(client: httpx.Client, conversation: str) -> str:
    asked: str = client.post(f"/conversations/{conversation}/compactions", json={}).raise_for_status().json()["id"]
    return asked


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@dataclass
class Load:
    """What the load came to. Times are seconds."""

    most_in_flight: int
    elapsed: float  # from the first call to the end of the last job
    rss_mb: float
    wait: float  # of the other tenant's job, until its first call
    median_job: float
    ended: int
    cpu_ms: float  # of the worker's process, for a job


@cache
def load(bench: Loaded) -> Load:
    """Queue everything, start the worker, and look until the queue is empty."""
    stack, model = bench.stack, bench.model
    stack.group.stop([stack.services["worker"]], grace_s=30)
    model.reset()
    model.script("bench", "fixed_tokens:150", latency=LATENCY)
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda n: _ask(bench.many, _conversation(bench.many, n)), range(JOBS)))
    late = _conversation(bench.other, 1)
    stack.start("worker")
    peak, stop = [0.0], threading.Event()
    watching = threading.Thread(target=_watch, args=(stack.services["worker"].popen.pid, peak, stop))
    watching.start()
    try:
        _until(lambda: model.most_in_flight() > 0)
        started_with = _cpu(stack.services["worker"].popen.pid)
        _until(lambda: _queued(bench) <= JOBS // 2)
        single = _ask(bench.other, late)
        _until(lambda: _queued(bench) == 0)
        cpu = _cpu(stack.services["worker"].popen.pid) - started_with
    finally:
        stop.set()
        watching.join()
    rows = [bench.many.get(f"/compactions/{one}").json() for one in asked]
    theirs = bench.other.get(f"/compactions/{single}").json()
    first = min(call["time"] for call in model.calls("bench"))
    jobs = [_seconds(row["finished_at"]) - _seconds(row["started_at"]) for row in rows]
    return Load(
        most_in_flight=model.most_in_flight(),
        elapsed=max(_seconds(row["finished_at"]) for row in rows) - first,
        rss_mb=peak[0],
        wait=_seconds(theirs["started_at"]) - _seconds(theirs["created_at"]),
        median_job=statistics.median(jobs),
        cpu_ms=cpu / len(rows) * 1000,
        ended=sum(row["outcome"] == "applied" and row["method"] == "llm" for row in rows),
    )


def _queued(bench: Loaded) -> int:
    text = httpx.get(f"{bench.stack.base_url}/metrics").text
    return sum(int(float(line.split()[-1])) for line in text.splitlines() if line.startswith("compaction_jobs{"))


def _until(met: Callable[[], bool], most: float = 900) -> None:
    end = time.monotonic() + most
    while not met():
        if time.monotonic() > end:
            raise TimeoutError("the load does not end")
        time.sleep(1)


def _cpu(pid: int) -> float:
    """Seconds of processor time a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watch(pid: int, peak: list[float], stop: threading.Event) -> None:
    """The most resident memory of a process, MB."""
    while not stop.wait(0.5):
        status = Path(f"/proc/{pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        peak[0] = max(peak[0], int(resident.split()[1]) / 1024)


def process(bench: Bench) -> Figures:
    """Calls in flight, rate, memory and fairness under the load, then how soon an idle worker calls."""
    with loaded(bench) as ready:
        found = load(ready)
        rate = found.ended / found.elapsed
        detail = {
            "per_second": rounded(rate), "seconds": rounded(found.elapsed), "jobs": JOBS, "by_model": found.ended,
            "median_job_s": rounded(found.median_job), "cpu_ms_per_job": rounded(found.cpu_ms), "latency_s": LATENCY,
        }  # fmt: skip
        waited = {"wait_s": rounded(found.wait), "behind": JOBS // 2}
        return {
            "calls_in_flight": Figure(found.most_in_flight, "calls", f">= {SLOTS}", detail),
            "worker_efficiency": Figure(rounded(rate / (SLOTS / LATENCY)), "of the ideal", ">= 0.9", detail),
            "worker_rss_mb": Figure(rounded(found.rss_mb), "MB", "<= 450", detail),
            "fair_wait": Figure(rounded(found.wait / found.median_job), "median jobs", "<= 2", waited),
            **_woken(ready),
        }


def _woken(bench: Loaded) -> Figures:
    """From the trigger in an append's transaction to the arrival of the call, with an idle worker; and when the wake-up
    is lost: it is not sent."""
    bench.model.script("bench", "fixed_tokens:150", latency=0)
    _wake(bench, 0, bench.other.post)  # a worker that has just started loads what calls need
    idle = [_wake(bench, n, bench.other.post) for n in range(WAKES)]
    lost = [_wake(bench, n, _unsent(bench)) for n in range(LOST)]
    return {
        "wake_ms": Figure(rounded(statistics.median(idle)), "ms", "<= 60", {"max_ms": max(idle), "runs": WAKES}),
        "wake_lost_ms": Figure(rounded(max(lost)), "ms (worst)", "<= 2000", {"runs": LOST}),
    }


def _wake(bench: Loaded, n: int, post: Callable[..., Any]) -> float:
    """Milliseconds of one append. Commit is later than the trigger by a millisecond or two: it counts against us."""
    time.sleep(0.3 + 0.1 * (n % 5))  # no two at the same distance from a sweep
    client, model = bench.other, bench.model
    policy = {"enabled": True, "target_compression_ratio": 4}
    conversation = _conversation(client, n, context_window=4000, policy=policy, messages=[])
    text = "".join(LINE.replace("{n}", str(n * 100 + k)) for k in range(60))
    before = len(model.calls("bench"))
    turns = [{"role": role, "content": text} for _ in range(2) for role in ("user", "assistant")]
    compaction: str = post(f"/conversations/{conversation}/messages", json={"messages": turns}).json()["compaction"][
        "id"
    ]
    _until_soon(lambda: len(model.calls("bench")) > before)
    called: float = model.calls("bench")[before]["time"]
    created = _seconds(client.get(f"/compactions/{compaction}").json()["created_at"])
    client.get(f"/conversations/{conversation}/context", params={"wait": 30, "wait_for": "idle"}).raise_for_status()
    return (called - created) * 1000


def _unsent(bench: Loaded) -> Callable[..., Any]:
    """A POST to the same service in this process, which sends no wake-ups."""
    from django.test import Client

    from compaction_service.compactions import requests

    vars(requests)["wake"] = lambda: None
    client = Client(headers={"Authorization": bench.other.headers["Authorization"], "Host": "localhost"})
    return lambda path, json: client.post(f"/v1{path}", json, content_type="application/json")


def _until_soon(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not met():
        if time.monotonic() > end:
            raise TimeoutError("no call came")
        time.sleep(0.02)
