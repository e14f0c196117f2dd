"""Round trips to the database of the two hot requests, whatever the conversation's length (docs/targets: 6 and 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from tests.inprocess import Service
from tests.integration.test_faults import LINE
from tests.integration.test_races import turn


def statements(act: Callable[[], Any]) -> list[str]:
    """The statements of the application role while `act` runs, with the key's look-up, without BEGIN, SET, COMMIT."""
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if "set_config" not in str(sql):
            seen.append(str(sql))
        return execute(sql, params, many, context)

    with connections["default"].execute_wrapper(note):
        act()
    return seen


@pytest.mark.parametrize("length", [10, 2000])
@pytest.mark.parametrize("enabled", [False, True])
def test_append_and_context__any_length__few_round_trips(service: Service, length: int, enabled: bool) -> None:
    path = service.create(context_window=1_000_000, policy={"enabled": enabled})
    for start in range(0, length, 500):
        service.append(path, *(message for n in range(start, min(length, start + 500), 2) for message in turn(f"{n}")))
    service.append(path, *turn("Warm"))
    service.context(path)
    appended = statements(lambda: service.append(path, *turn("Next")))
    read = statements(lambda: service.context(path))
    assert len(appended) == 5, appended
    assert len(read) == 3, read


def test_append_and_context__after_many_compactions__few_round_trips(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True})
    for n in range(30):
        service.append(path, *turn(f"{n} {LINE * 5}"))
        service.work_off()
    assert sum(entry["outcome"] == "applied" for entry in service.compactions(path)) > 3
    appended = statements(lambda: service.append(path, *turn("Next")))
    read = statements(lambda: service.context(path))
    assert len(appended) <= 6, appended
    assert len(read) == 4, read


def test_append__tool_results_waiting_to_be_masked__no_more_round_trips(service: Service) -> None:
    path = service.create(context_window=1_000_000)
    for n in range(8):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": f"c{n}", "content": LINE * 12}
        service.append(path, {"role": "assistant", "content": None, "tool_calls": [call]}, result)
    counts = [len(statements(lambda: service.append(path, *turn("Next")))) for _ in range(3)]
    assert max(counts) <= 6
