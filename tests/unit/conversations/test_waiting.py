from __future__ import annotations

import time

import pytest

from tests.inprocess import Service

LONG = "word " * 9000  # more than the window


@pytest.mark.parametrize("wait_for", ["fit", "idle"])
@pytest.mark.parametrize("what", ["system", "request"])
def test_wait__context_that_no_compaction_can_make_fit__is_refused_at_once(
    service: Service, what: str, wait_for: str
) -> None:
    path = service.create(policy={"enabled": True}, system=LONG if what == "system" else None)
    service.append(path, {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"})
    if what == "request":
        path = service.create(policy={"enabled": True})
        service.append(path, {"role": "user", "content": LONG})
    service.post(f"{path}/compactions", status=None)
    started = time.monotonic()
    service.get(f"{path}/context?wait=20&wait_for={wait_for}", status=422)
    assert time.monotonic() - started < 5


def test_wait__large_request_that_has_its_answer__is_waited_for(service: Service) -> None:
    path = service.create(policy={"enabled": True, "keep_last_user_request": False})
    service.append(path, {"role": "user", "content": LONG}, {"role": "assistant", "content": "done"})
    started = time.monotonic()
    service.get(f"{path}/context?wait=0.5", status=None)
    assert time.monotonic() - started > 0.4
