"""A list of faults from a seed, and their execution on a cluster under load."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import psutil  # type: ignore[import-untyped]
import redis

from compaction_service.compactions.broker import QUEUE
from compaction_service.compactions.leases import LEASE
from tests.reliability import broker
from tests.reliability.cluster import Cluster, until

logger = logging.getLogger(__name__)

WORKERS = 3
PAUSE_S = (0.2, 3.0)
CALL_WAIT_S = 5.0  # for a worker that is at a call


def planned(kills: int, seed: int) -> list[str]:
    """The faults of a run in a random order: `kills` of workers, a tenth as many of web, the rest by their share."""
    shares = {
        "worker_killed_at_a_call": kills - kills // 2,
        "worker_killed_any_time": kills // 2,
        "web_killed": max(1, kills // 20),
        "web_process_killed": max(1, kills // 20),
        "broker_flushed": max(1, kills // 20),
        "broker_killed": max(1, kills // 40),
        "database_killed": max(1, kills // 40),
        "worker_stalled": max(1, kills // 66),
        "messages_doubled": max(1, kills // 20),
        "messages_reordered": max(1, kills // 20),
        "beat_killed": max(1, kills // 66),
    }
    faults = [name for name, times in shares.items() for _ in range(times)]
    random.Random(seed).shuffle(faults)  # noqa: S311 -- repeatable
    return faults


@dataclass
class Chaos:
    """Executes faults one after another; keeps the times at which workers were killed."""

    cluster: Cluster
    model_port: int
    chooser: random.Random
    done: Counter[str] = field(default_factory=Counter)
    kills: list[float] = field(default_factory=list)  # time.time()
    other: list[float] = field(default_factory=list)  # of faults that may cost a worker its lease otherwise

    def run(self, faults: list[str], limit_s: float) -> None:
        """The faults in their order, as far as they get within `limit_s` seconds."""
        began = time.monotonic()
        for number, fault in enumerate(faults, 1):
            if time.monotonic() - began > limit_s:
                return
            time.sleep(self.chooser.uniform(*PAUSE_S))
            getattr(self, f"_{fault}")()
            self.done[fault] += 1
            logger.info("%d of %d: %s at %.0f s", number, len(faults), fault, time.monotonic() - began)

    def _worker_killed_any_time(self) -> None:
        until("a worker is ready", self.cluster.workers_ready, every=0.2)
        self._kill(self.chooser.choice(self.cluster.workers_ready()))

    def _worker_killed_at_a_call(self) -> None:
        deadline = time.monotonic() + CALL_WAIT_S
        until("a worker is ready", self.cluster.workers_ready, every=0.2)
        while not (busy := [one for one in self.cluster.workers_ready() if self._at_a_call(one)]):
            if time.monotonic() > deadline:
                busy = self.cluster.workers_ready()
                break
            time.sleep(0.1)
        time.sleep(self.chooser.uniform(0, 0.5))
        self._kill(self.chooser.choice(busy))

    def _kill(self, number: int) -> None:
        self.kills.append(self.cluster.kill_worker(number))
        self.cluster.start_worker(number, wait=False)

    def _at_a_call(self, number: int) -> bool:
        with suppress(psutil.Error):
            for one in psutil.Process(self.cluster.workers[number].popen.pid).net_connections("tcp"):
                if one.raddr and one.raddr.port == self.model_port and one.status == psutil.CONN_ESTABLISHED:
                    return True
        return False

    def _web_killed(self) -> None:
        until("web answers", self.cluster.web_ready, every=0.2)
        self.cluster.kill_web()
        self.cluster.start_web(wait=False)

    def _web_process_killed(self) -> None:
        until("web answers", self.cluster.web_ready, every=0.2)
        self.cluster.kill_web(master=False)

    def _broker_flushed(self) -> None:
        broker.flush(self.cluster)

    def _broker_killed(self) -> None:
        argv = self.cluster.kill_broker()
        time.sleep(self.chooser.uniform(0, 4))
        self.cluster.start_broker(argv)

    def _database_killed(self) -> None:
        self.other.append(time.time())
        self.cluster.restart_postgres(down_s=self.chooser.uniform(0, 3))

    def _worker_stalled(self) -> None:
        """Longer than its lease: it wakes to find its jobs in other hands."""
        until("a worker is ready", self.cluster.workers_ready, every=0.2)
        number = self.chooser.choice(self.cluster.workers_ready())
        self.other.append(time.time())
        with self.cluster.frozen(number):
            time.sleep(LEASE.total_seconds() + 4)

    def _messages_doubled(self) -> None:
        """What waits, or where workers are idle and nothing does, a message that one of them holds."""
        with broker.client(self.cluster) as one, suppress(redis.RedisError):
            for message in one.lrange(QUEUE, 0, -1) or broker.unacknowledged(self.cluster)[:1]:
                one.lpush(QUEUE, *[message] * 20)

    def _messages_reordered(self) -> None:
        """What waits is shuffled, and some of it lost."""
        with broker.client(self.cluster) as one, suppress(redis.RedisError):
            waiting = one.lrange(QUEUE, 0, -1)
            one.delete(QUEUE)
            self.chooser.shuffle(waiting)
            if kept := waiting[len(waiting) // 3 :]:
                one.lpush(QUEUE, *kept)

    def _beat_killed(self) -> None:
        self.cluster.stack.services["beat"].popen.kill()
        self.cluster.stack.services["beat"].popen.wait()
        self.cluster.stack.start("beat")
