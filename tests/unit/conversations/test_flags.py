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


def test_revert__unpinned_since_in_the_older_span__is_carried_no_more(service: Service) -> None:
    path = compacted(service)
    service.patch(f"{path}/messages/3", {"pinned": True})
    service.patch(f"{path}/messages/7", {"pinned": True})
    service.append(path, user(), answer(), user("Later."), answer("Done."))
    second = service.compact(path)
    assert service.context(path)["carried"] == [2, 3, 4, 5, 7]
    service.patch(f"{path}/messages/3", {"pinned": False})

    service.post(f"compactions/{second['id']}/revert", status=200)

    assert service.context(path)["carried"] == [7]
    assert audit(service.tenant_id, path.removeprefix("conversations/"), counter_for("o200k_base", 1.0)) == []


def test_revert__unpinned_since_in_a_fork__is_carried_no_more(service: Service) -> None:
    path = compacted(service)
    service.patch(f"{path}/messages/3", {"pinned": True})
    service.append(path, *[message for _ in range(4) for message in (user(), answer())])
    service.patch(path, {"policy": {"strategy": "hierarchical"}})
    assert service.compact(path)["outcome"] == "applied"
    fork = f"conversations/{service.post(f'{path}/fork', {'position': 18})['id']}"
    second = service.compactions(fork)[-1]
    assert service.context(fork)["carried"] == [2, 3, 4, 5]
    service.patch(f"{fork}/messages/3", {"pinned": False})

    service.post(f"compactions/{second['id']}/revert", status=200)

    assert service.context(fork)["carried"] == []
    assert service.context(fork)["covered"] == {"from": 1, "to": 8}


@pytest.mark.parametrize(("keep", "carried"), [(True, [7]), (False, [])])
def test_revert__unpinned_request__is_carried_only_as_the_policy_says(
    service: Service, keep: bool, carried: list[int]
) -> None:
    """The last request, covered, pinned and unpinned again: the policy's word counts."""
    path = service.create(policy={"mask_tool_results": False, "target": 0, "preserve_recent_turns": 0})
    service.append(path, *[m for _ in range(3) for m in (user(), answer())], user(), answer(), answer())
    service.patch(f"{path}/messages/7", {"pinned": True})
    assert service.compact(path, up_to=8)["outcome"] == "applied"
    assert service.context(path)["carried"] == [7]
    service.append(path, answer(), answer())
    second = service.compact(path)
    assert second["outcome"] == "applied"
    service.patch(path, {"policy": {"keep_last_user_request": keep}})
    service.patch(f"{path}/messages/7", {"pinned": False})

    service.post(f"compactions/{second['id']}/revert", status=200)

    assert service.context(path)["carried"] == carried


def tool_round(number: int, tool: str = "bash") -> list[dict[str, Any]]:
    made = call(f"c{number}")
    made["tool_calls"][0]["function"]["name"] = tool
    return [made, result(f"c{number}"), answer("So.")]


MASKING = {"mask_min_reclaim_tokens": 0, "keep_tool_results": 1, "preserve_tools": [], "target": 0}


@pytest.mark.parametrize("masked_before", [True, False])
def test_unpin__an_old_result__is_masked_by_the_next_append(service: Service, masked_before: bool) -> None:
    path = service.create(policy=MASKING)
    service.append(path, user(), *tool_round(1))
    if not masked_before:
        service.patch(f"{path}/messages/3", {"pinned": True})
    for number in (2, 3, 4):
        service.append(path, *tool_round(number))
    if masked_before:
        service.patch(f"{path}/messages/3", {"pinned": True})
    service.append(path, user("And?"), answer("So."))
    assert service.context(path)["masked"] == [6, 9]

    service.patch(f"{path}/messages/3", {"pinned": False})

    assert service.context(path)["masked"] == [6, 9]  # masks belong to appends
    service.append(path, user("And?"), answer("So."))
    assert service.context(path)["masked"] == [3, 6, 9]
    assert audit(service.tenant_id, path.removeprefix("conversations/"), counter_for("o200k_base", 1.0)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"preserve_tools": ["bash"]}, {"preserve_tools": []}),
        ({"mask_min_chars": 100_000}, {"mask_min_chars": 100}),
        ({"mask_tool_results": False}, {"mask_tool_results": True}),
        ({"keep_tool_results": 9}, {"keep_tool_results": 1}),
    ],
)
def test_policy__that_masks_more__masks_old_results_at_the_next_append(
    service: Service, before: dict[str, Any], after: dict[str, Any]
) -> None:
    path = service.create(policy={**MASKING, **before})
    service.append(path, user(), *tool_round(1), *tool_round(2), *tool_round(3, "other"), *tool_round(4, "other"))

    service.patch(path, {"policy": after})
    service.append(path, user("And?"), answer("So."))

    assert service.context(path)["masked"] == [3, 6, 9]


def test_revert__results_live_again__are_masked_by_the_next_append(service: Service) -> None:
    """They were among the newest when they were covered, and the watermark has gone on since."""
    path = service.create(policy=MASKING)
    service.append(path, user("Run it."), *tool_round(1)[:2], answer(), user(), *tool_round(2))
    done = service.compact(path, up_to=4)
    assert done["outcome"] == "applied"
    service.append(path, user(), *tool_round(3))
    before = service.context(path)["masked"]

    service.post(f"compactions/{done['id']}/revert", status=200)
    service.append(path, user("And?"), answer("So."))

    assert before == [7]
    assert service.context(path)["masked"] == [3, 7]
