from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(60))


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "read", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(of: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": of, "content": TEXT}


def user(text: str = TEXT) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str = TEXT) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def compacted(service: Service) -> str:
    """u1 a2(x,y) t3 u4 t5 a6 u7 a8 | u9 a10: all but the newest turn covered, nothing carried."""
    path = service.create(policy={"mask_tool_results": False, "target": 0})
    first = [user(), call("x", "y"), result("x"), user("And?"), result("y"), answer(), user(), answer()]
    service.append(path, *first, user("Now."), answer("Yes."))
    assert service.compact(path)["outcome"] == "applied"
    assert service.context(path)["carried"] == []
    return path


def test_pin__a_result_inside_a_covered_exchange__the_whole_exchange_is_carried(service: Service) -> None:
    path = compacted(service)

    service.patch(f"{path}/messages/3", {"pinned": True})

    assert service.context(path)["carried"] == [2, 3, 4, 5]


def test_unpin__the_last_covered_request_with_a_newer_one_in_the_tail__is_carried_no_more(service: Service) -> None:
    path = compacted(service)
    before = service.context(path)["messages"]
    service.patch(f"{path}/messages/7", {"pinned": True})
    assert service.context(path)["carried"] == [7]

    service.patch(f"{path}/messages/7", {"pinned": False})

    assert service.context(path)["messages"] == before


def test_pin__a_covered_message_of_a_long_conversation__reads_few_rows(service: Service) -> None:
    path = service.create(policy={"target": 0})
    service.append(path, *[message for _ in range(200) for message in (user("Why?"), answer("So."))])
    service.append(path, user(), answer(), user("Now."), answer("Yes."))
    service.compact(path)
    queries = CaptureQueriesContext(connection)

    with queries:
        service.patch(f"{path}/messages/3", {"pinned": True})

    read = [one["sql"] for one in queries if '"conversations_message"' in one["sql"] and "SELECT" in one["sql"]]
    assert all("LIMIT" in sql or '"position" < ' in sql or '"position" IN' in sql for sql in read), json.dumps(read)


def test_revert__pinned_since_in_the_older_span__stays_carried(service: Service) -> None:
    path = compacted(service)
    service.append(path, user(), answer(), user("Later."), answer("Done."))
    second = service.compact(path)
    assert second["outcome"] == "applied"
    service.patch(f"{path}/messages/5", {"pinned": True})
    service.patch(f"{path}/messages/9", {"pinned": True})

    service.post(f"compactions/{second['id']}/revert", status=200)

    assert service.context(path)["carried"] == [2, 3, 4, 5]


@pytest.mark.parametrize("covered", [False, True])
def test_pin__a_masked_result__is_shown_verbatim_and_counted(service: Service, covered: bool) -> None:
    path = service.create(policy={"keep_tool_results": 0, "mask_min_reclaim_tokens": 0, "target": 0})
    service.append(path, user(), call("x"), result("x"), answer())
    service.append(path, user(), answer("Yes."))
    assert service.context(path)["masked"] == [3]
    if covered:
        assert service.compact(path)["outcome"] == "applied"

    service.patch(f"{path}/messages/3", {"pinned": True})

    context = service.context(path)
    assert context["masked"] == []
    assert any(message["content"] == TEXT for message in context["messages"] if message["role"] == "tool")
    assert audit(service.tenant_id, path.removeprefix("conversations/"), counter_for("o200k_base", 1.0)) == []
