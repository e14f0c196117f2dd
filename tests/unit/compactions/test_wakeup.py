from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compaction_service.compactions import wakeup


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Sets the broker of this process's wake-ups."""
    monkeypatch.setattr(wakeup, "_ask_after", 0.0)

    def set_url(url: str) -> None:
        settings.BROKER_URL = url
        wakeup._sender.cache_clear()
        wakeup.warm()

    yield set_url
    wakeup._sender.cache_clear()


def seconds_of_a_wake() -> float:
    start = time.monotonic()
    wakeup.wake()
    return time.monotonic() - start


def test_wake__broker_refuses_connections__costs_next_to_nothing(broker: Any) -> None:
    broker("redis://127.0.0.1:9/0")
    assert seconds_of_a_wake() < 1.0
    assert seconds_of_a_wake() < 0.05  # not asked again so soon


def test_wake__broker_hangs__is_left_after_its_timeout(broker: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        assert seconds_of_a_wake() < 2.5
        assert seconds_of_a_wake() < 0.05


def test_wake__broker_is_back__is_asked_again(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broker("redis://127.0.0.1:9/0")
    wakeup.wake()
    monkeypatch.setattr(wakeup, "PAUSE", 0)
    monkeypatch.setattr(wakeup, "_ask_after", 0.0)
    sent: list[str] = []
    monkeypatch.setattr(wakeup._sender(), "send_task", lambda name, **_: sent.append(name))
    wakeup.wake(2)
    assert sent == [wakeup.TASK] * 2
