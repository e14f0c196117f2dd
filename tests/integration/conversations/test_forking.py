"""Forking a conversation (semantics 9)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Member
from tests.integration.conversations.drive import SMALL, Driver, calls, client, result, run_jobs, said, user
from tests.integration.conversations.test_editing import WORDS, talk

pytestmark = pytest.mark.usefixtures("by_hand")


@pytest.fixture
def driver(tenant: Member) -> Driver:
    return Driver.create(tenant, external_id="source", system="Be brief.", metadata={"of": "me"})


def _forked(driver: Driver, position: int, **fields: Any) -> Driver:
    answer = driver.fork(position, **fields)
    assert answer.status_code == 201, answer.content
    assert answer.headers["Location"] == f"/v1/conversations/{answer.json()['id']}"
    return driver.of(answer.json()["id"])


def test_fork__position__has_the_messages_up_to_it_at_their_places(driver: Driver) -> None:
    driver.append(*talk(3), details=[{"pinned": i == 1, "metadata": {"n": i}} for i in range(6)])
    fork = _forked(driver, 4, external_id="copy")
    body, source = fork.get(), driver.get()
    assert (body["external_id"], body["last_position"], body["message_count"]) == ("copy", 4, 4)
    assert [body[name] for name in ("model", "system", "metadata", "policy")] == [
        source[name] for name in ("model", "system", "metadata", "policy")
    ]
    one = driver.client.get(f"{fork.path}/messages/2").json()
    assert one == driver.client.get(f"{driver.path}/messages/2").json()
    assert one["pinned"] is True
    assert fork.context()["messages"] == driver.context()["messages"][:5]
    assert fork.append(user("other way")).json()["messages"][0]["position"] == 5
    fork.check()
    driver.check()
    assert driver.get()["last_position"] == 6


def test_fork__masked_results__are_masked_in_it(tenant: Member) -> None:
    policy = {"reserve_output_tokens": 500, "mask_min_reclaim_tokens": 0, "keep_tool_results": 0}
    driver = Driver.create(tenant, policy=policy)
    driver.append(user("go"), calls("a"), result("a", WORDS), calls("b"), result("b", WORDS), said("done"))
    assert driver.context()["masked"] == [3, 5]
    fork = _forked(driver, 4)
    assert fork.context()["masked"] == [3]
    fork.check()


def test_fork__amid_parallel_results__has_the_missing_one_open(driver: Driver) -> None:
    driver.append(user("go"), calls("x", "y"), result("x", "1"), result("y", "2"), said("done"))
    fork = _forked(driver, 3)
    fork.check()
    assert fork.append(result("y", "other"), said("done")).status_code == 201
    fork.check()


def test_fork__erased_and_stubs__stay_so(driver: Driver) -> None:
    driver.append(user("zebra"), user("go"), calls("x"), result("x", "zebra"), said("done"))
    driver.erase(1)
    driver.erase(4)
    fork = _forked(driver, 5)
    assert list(fork.originals()) == [2, 3, 5]
    assert fork.context()["messages"] == driver.context()["messages"]
    assert fork.get()["message_count"] == 3
    fork.check()


def test_fork__node_that_ends_before__comes_along_and_can_be_reverted(driver: Driver) -> None:
    driver.append(*talk(5))
    made = driver.compact()
    driver.append(*talk(2, "m"))
    fork = _forked(driver, 12)
    context, source = fork.context(), driver.context()
    assert context["covered"] == source["covered"]
    assert context["messages"] == source["messages"][: len(context["messages"])]
    (node,), (original,) = fork.chain(), driver.chain()
    changed = ("id", "conversation", "compaction")
    assert {k: v for k, v in node.items() if k not in changed} == {
        k: v for k, v in original.items() if k not in changed
    }
    entry = fork.compaction(node["compaction"])
    assert entry["notes"][-1] == {"copied_from": made["id"]}
    assert (entry["conversation"], entry["summary"], entry["outcome"]) == (fork.id, made["summary"], "applied")
    assert fork.post(f"/v1/compactions/{entry['id']}/revert", {}).status_code == 200
    assert fork.context()["covered"] is None
    fork.check()
    assert driver.context() == source
    driver.check()


def test_fork__amid_a_covered_span__is_live(driver: Driver) -> None:
    driver.append(*talk(5))
    made = driver.compact()
    fork = _forked(driver, made["to_position"] - 1)
    assert (fork.chain(), fork.context()["covered"]) == ([], None)
    fork.check()
    assert fork.compact()["outcome"] == "applied"
    fork.check()


def test_fork__over_its_limit__is_compacted(tenant: Member) -> None:
    driver = Driver.create(tenant)
    driver.append(*talk(20))
    driver.client.patch(driver.path, {"policy": {"enabled": True}}, content_type="application/json")
    fork = _forked(driver, 38)
    assert fork.get()["compaction"]["state"] == "queued"
    run_jobs(tenant)
    assert fork.chain()[0]["state"] == "active"
    fork.check()
    driver.check()


def test_fork__erased_in_the_source_afterwards__is_kept_in_the_fork(driver: Driver) -> None:
    driver.append(*talk(2))
    fork = _forked(driver, 4)
    driver.client.delete(driver.path)
    assert len(fork.originals()) == 4
    fork.check()


@pytest.mark.parametrize(
    ("body", "code", "attr"),
    [
        ({"position": 5}, "out_of_range", "position"),
        ({"position": 0}, "min_value", "position"),
        ({}, "required", "position"),
        ({"position": 1, "upto": 2}, "unknown_field", "upto"),
    ],
)
def test_fork__bad_field__is_a_400_that_names_it(driver: Driver, body: Any, code: str, attr: str) -> None:
    driver.append(*talk(2))
    answer = driver.post(f"{driver.path}/fork", body)
    assert answer.status_code == 400
    assert [(e["code"], e["attr"]) for e in answer.json()["errors"]] == [(code, attr)]


def test_fork__external_id_taken__is_a_409(driver: Driver) -> None:
    driver.append(*talk(1))
    answer = driver.fork(2, external_id="source")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "external_id_taken")


def test_fork__repeated_with_its_key__is_one_fork(driver: Driver) -> None:
    driver.append(*talk(1))
    first, second = (driver.post(f"{driver.path}/fork", {"position": 2}, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert second.headers["Idempotency-Replayed"] == "true"
    assert first.content == second.content
    assert len(driver.client.get("/v1/conversations").json()["data"]) == 2


def test_fork__reader_and_stranger__may_not(driver: Driver, stranger: Member) -> None:
    driver.append(*talk(1))
    for key, status in ((driver.member.read_key, 403), (stranger.key, 404)):
        answer = client(key).post(f"{driver.path}/fork", {"position": 1}, content_type="application/json")
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("transparency", "asker", "marked"), [("full", "fork", 1), ("summary", "fork", 0), ("silent", None, 0)]
)
def test_fork__log_entry__says_no_more_than_its_transparency(
    tenant: Member, transparency: str, asker: str | None, marked: int
) -> None:
    driver = Driver.create(tenant, policy={**SMALL["policy"], "transparency": transparency})
    driver.append(*talk(5))
    driver.compact()
    fork = _forked(driver, 10)
    entry = fork.compaction(fork.chain()[0]["compaction"])
    assert entry["requested_by"] == asker
    assert len([note for note in entry["notes"] or [] if "copied_from" in note]) == marked
    assert (entry["from_position"] is None) == (transparency == "silent")
    assert fork.post(f"/v1/compactions/{entry['id']}/revert", {}).status_code == 200
    fork.check()
