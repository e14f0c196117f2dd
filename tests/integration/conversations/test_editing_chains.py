"""Erasing and forking where several nodes are active (semantics 7, hierarchical, and 9)."""

from __future__ import annotations

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
    assert _revert(driver, rebuilt) == 200
    assert driver.context()["covered"] == {"from": 1, "to": first["to_position"]}
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
