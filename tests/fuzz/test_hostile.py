"""Hostile requests: never a 5xx, never half of a request stored, never a second more than a request may take.

2,000 of them in CI; `make fuzz` sends more (FUZZ_REQUESTS), over the running service too.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter as Tally
from collections.abc import Callable
from typing import Any

import pytest

from compaction_service.conversations import waiting
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope
from tests.bench.figures import Figure
from tests.conftest import Member
from tests.fuzz import world as worlds
from tests.fuzz.hostile import Hostile
from tests.fuzz.wsgi import App
from tests.inprocess import Clock
from tests.invariants import chain_problems

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "2000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))  # `make fuzz` draws another each time
FURNISH_EVERY = 150
LONGEST = 20.0  # seconds; on a busy machine. Quadratic work on the longest body takes minutes


def _wrong(status: int, headers: dict[str, str], body: bytes) -> str | None:
    """What is wrong with an answer, whatever was asked."""
    if status >= 500:
        return f"a {status}"
    if "x-request-id" not in headers:
        return "no request id"
    if status >= 400 and headers.get("content-type") == "application/json" and body:
        told = json.loads(body)
        if not told["errors"][0]["detail"] or told["request_id"] != headers["x-request-id"]:
            return "an error of another shape"
    return None


@pytest.mark.timeout(max(1800, REQUESTS // 2))
def test_hostile_requests__any__are_refused_whole_and_never_a_5xx(
    make_tenant: Callable[[], Member], clock: Clock, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    monkeypatch.setattr(waiting, "_seats", _NoSeat())  # nobody works here: `wait` would wait in vain
    member, other = make_tenant(), make_tenant()
    world, app = worlds.make(member, other), App()
    source = Hostile(SEED, world.names, member.key, world.platform_key)
    faults: list[str] = []
    tally: Tally[int] = Tally()
    slowest = (0.0, "")
    before = worlds.digest(member.id, other.id)
    for number in range(REQUESTS):
        if number % FURNISH_EVERY == FURNISH_EVERY - 1:
            world.furnish()
            before = worlds.digest(member.id, other.id)
        request = source.next()
        started = time.perf_counter()
        status, headers, body = app(request)
        slowest = max(slowest, (time.perf_counter() - started, str(request)))
        tally[status] += 1
        if wrong := _wrong(status, headers, body):
            faults.append(f"{wrong}: {request} -> {body[:200]!r}")
        after = worlds.digest(member.id, other.id)
        if status >= 400 and after != before:
            faults.append(
                f"stored by a {status}: {request} {[b for a, b in zip(before, after, strict=True) if a != b]}"
            )
        before = after
    told = {
        "requests": REQUESTS,
        "seed": SEED,
        "slowest_s": round(slowest[0], 2),
        "statuses": dict(sorted(tally.items())),
    }
    figure("fuzz_5xx", Figure(len(faults), "requests", "0", told))
    assert not faults, "\n".join([f"FUZZ_SEED={SEED}: {len(faults)} faults", *faults[:20]])
    assert slowest[0] < LONGEST, slowest
    assert tally[200] + tally[201] + tally[202] > REQUESTS / 50  # they do get somewhere
    assert _broken(member) == []


class _NoSeat:
    """All seats for waiting requests are taken."""

    def acquire(self, **_: Any) -> bool:
        return False


def _broken(member: Member) -> list[str]:
    """Conversations that are not whole any more."""
    with tenant_scope(member.id):
        ids = [str(one) for one in Conversation.objects.values_list("id", flat=True)]
    found = [problem for one in ids for problem in chain_problems(member.id, one)]
    return [one for one in found if one != "positions have holes"]  # a fork does not copy what was erased
