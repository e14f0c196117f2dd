from __future__ import annotations

import threading
import uuid
from types import SimpleNamespace

import pytest

from compaction_service.compactions import leases
from compaction_service.compactions.leases import Claim


def test_held__while_the_heartbeat_of_before_is_ending__a_new_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that found nothing to keep is alive a moment longer; it must not be taken for a beating one."""
    ending, beat = threading.Event(), threading.Event()

    class Lingering(threading.Thread):
        def run(self) -> None:
            super().run()
            ending.wait(5)

    monkeypatch.setattr(leases, "HEARTBEAT", 0.01)
    monkeypatch.setattr(leases, "_beat", None)
    monkeypatch.setattr(threading, "Thread", Lingering)
    monkeypatch.setattr(leases, "connection", SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(leases, "extend", lambda _fences: beat.set())

    def claim() -> Claim:
        return Claim(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), 1)

    try:
        with leases.held(claim()):
            first = leases._beat
        assert first is not None
        first.join(0.2)  # it has found nothing to do by now
        beat.clear()
        with leases.held(claim()):
            assert beat.wait(2)
    finally:
        ending.set()
