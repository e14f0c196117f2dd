"""Erasing and forking where several nodes are active (semantics 7, hierarchical, and 9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Member
from tests.integration.conversations.drive import SMALL, Driver, said, user
from tests.integration.conversations.test_editing import talk

pytestmark = pytest.mark.usefixtures("by_hand")


def _chained(member: Member, nodes: int) -> Driver:
    driver = Driver.create(member, policy={**SMALL["policy"], "strategy": "hierarchical", "summary_max_tokens": 100})
    for number in range(nodes):
        driver.append(*talk(3, f"n{number}"), user(f"Keep zebra{number}.py in mind."), said("Noted."))
        assert driver.compact()["outcome"] == "applied"
    return driver


def _states(driver: Driver) -> list[tuple[str, bool]]:
    return [(node["state"], bool(node["text"])) for node in driver.chain()]


def _revert(driver: Driver, node: Any) -> int:
    return int(driver.post(f"/v1/compactions/{node['compaction']}/revert", {}).status_code)


def test_erase__in_a_middle_node__later_ones_are_stale_and_keep_their_text(tenant: Member) -> None:
    driver = _chained(tenant, 3)
    first, middle, last = driver.chain()
    driver.erase(middle["from_position"])
    assert _states(driver) == [("active", True), ("stale", False), ("stale", True)]
    context = driver.context()
    assert context["covered"] == {"from": 1, "to": first["to_position"]}
    assert context["summaries"] == [first["id"]]
    assert all(position <= first["to_position"] for position in context["carried"])
    driver.check()
    assert _revert(driver, last) == 409
    assert driver.compact()["outcome"] == "applied"
    rebuilt = driver.chain()[-1]
    assert (rebuilt["state"], rebuilt["to_position"] > middle["to_position"]) == ("active", True)
    driver.check()
    assert _revert(driver, first) == 409  # the rebuilt one is newer
    assert _revert(driver, rebuilt) == 200
    assert driver.context()["covered"] == {"from": 1, "to": first["to_position"]}
    driver.check()
    assert (_revert(driver, last), _revert(driver, middle), _revert(driver, first)) == (409, 409, 200)
    assert driver.context()["covered"] is None
    driver.check()


def test_rewind__to_a_node_s_end__keeps_it_and_makes_the_later_ones_stale(tenant: Member) -> None:
    driver = _chained(tenant, 3)
    first = driver.chain()[0]
    driver.rewind(first["to_position"] + 1)
    assert _states(driver) == [("active", True), ("stale", False), ("stale", False)]
    assert driver.context()["covered"] == {"from": 1, "to": first["to_position"]}
    assert "zebra2" not in driver.texts()
    driver.check()


def test_erase__under_a_merged_node__takes_its_text_and_its_children_s(tenant: Member) -> None:
    driver = _chained(tenant, 6)
    assert {node["level"] for node in driver.chain()} == {0, 1}
    positions = [at for at, message in driver.originals().items() if "zebra0" in str(message["content"])]
    for position in positions:
        driver.erase(position)
    over = [node for node in driver.chain() if node["from_position"] <= positions[0] <= node["to_position"]]
    assert {node["level"] for node in over} == {0, 1}
    assert [(node["state"], node["text"]) for node in over] == [("stale", "")] * len(over)
    assert "zebra0" not in driver.texts()
    driver.check()
    driver.compact()
    driver.check()


def test_fork__of_a_chain__reverts_node_by_node(tenant: Member) -> None:
    driver = _chained(tenant, 3)
    ends = [node["to_position"] for node in driver.chain()]
    answer = driver.fork(ends[2] - 1)
    fork = driver.of(answer.json()["id"])
    one, two = fork.chain()
    assert [(node["state"], node["to_position"]) for node in (one, two)] == [("active", ends[0]), ("active", ends[1])]
    fork.check()
    assert (_revert(fork, one), _revert(fork, two)) == (409, 200)
    assert fork.context()["covered"] == {"from": 1, "to": ends[0]}
    fork.check()
    assert _revert(fork, one) == 200
    assert fork.context()["covered"] is None
    fork.check()
    driver.check()


def test_erase__in_a_middle_node__what_is_left_of_the_chain_can_be_undone_node_by_node(tenant: Member) -> None:
    driver = _chained(tenant, 4)
    one, two, three, four = driver.chain()
    driver.erase(three["from_position"])
    assert [_revert(driver, node) for node in (four, three, one, two, one)] == [409, 409, 409, 200, 200]
    assert driver.context()["covered"] is None
    assert [_revert(driver, node) for node in (four, three, two, one)] == [409] * 4
    driver.check()


def test_erase__in_the_node_made_beside_a_merge__the_merge_can_be_undone(tenant: Member) -> None:
    driver = _merged_beside(tenant)
    merge, newest = _active(driver)
    assert merge["compaction"] == newest["compaction"]
    driver.erase(newest["from_position"])
    assert driver.context()["covered"] == {"from": 1, "to": merge["to_position"]}
    assert _revert(driver, newest) == 200
    parts = _active(driver)
    assert (parts[0]["from_position"], parts[-1]["to_position"], len(parts)) == (1, merge["to_position"], 4)
    driver.check()
    assert [_revert(driver, node) for node in reversed(parts)] == [200] * 4
    driver.check()


def test_fork__at_a_merged_node__its_log_entry_tells_of_that_node_only(tenant: Member) -> None:
    driver = _merged_beside(tenant)
    merge, newest = _active(driver)
    assert "zebra3" in driver.compaction(newest["compaction"])["summary"]

    fork = driver.of(driver.fork(merge["to_position"]).json()["id"])

    (node,) = fork.chain()
    entry = fork.compaction(node["compaction"])
    assert (entry["summary"], entry["to_position"]) == (merge["text"], merge["to_position"])
    assert "zebra3" not in json.dumps([entry, fork.chain(), fork.context()])
    assert fork.post(f"/v1/compactions/{entry['id']}/revert", {}).status_code == 200
    fork.check()


def test_fork__of_a_merge_and_what_was_made_with_it__an_erasure_reaches_each_text(tenant: Member) -> None:
    driver = _merged_beside(tenant)
    _, newest = _active(driver)
    fork = driver.of(driver.fork(newest["to_position"]).json()["id"])
    for position, message in fork.originals().items():
        if "zebra3" in str(message["content"]):
            fork.erase(position)
    listed = fork.client.get(f"/v1/compactions?conversation={fork.id}").json()["data"]
    entries = [fork.compaction(entry["id"]) for entry in listed]
    assert len(entries) == 2
    assert "zebra3" not in json.dumps([entries, fork.chain(), fork.context()])
    fork.check()


def _merged_beside(member: Member) -> Driver:
    """Four nodes merged into one by the compaction that made a fifth: both are active."""
    driver = _chained(member, 4)
    assert len(_active(driver)) == 4
    tokens = driver.get()["meter"]["breakdown"]["summaries"]
    driver.client.patch(driver.path, {"policy": {"summary_chain_max_tokens": tokens}}, content_type="application/json")
    driver.append(*talk(3, "n4"), user("Keep zebra4.py in mind."), said("Noted."))
    assert driver.compact()["outcome"] == "applied"
    assert [node["level"] for node in _active(driver)] == [1, 0]
    return driver


def _active(driver: Driver) -> list[Any]:
    return sorted((n for n in driver.chain() if n["state"] == "active"), key=lambda node: node["from_position"])
