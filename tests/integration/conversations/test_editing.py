"""Erasing one message and rewinding (semantics 9)."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Member
from tests.integration.conversations.drive import Driver, calls, client, result, run_jobs, said, texts_of, user

pytestmark = pytest.mark.usefixtures("by_hand")
WORDS = "the quick brown fox jumps over the lazy dog and finds the file src/app.py there. " * 6


def talk(turns: int, mark: str = "n") -> list[dict[str, object]]:
    return [m for i in range(turns) for m in (user(f"{mark}{i}ask {WORDS}"), said(f"{mark}{i}answer {WORDS}"))]


@pytest.fixture
def driver(tenant: Member) -> Driver:
    return Driver.create(tenant)


def test_erase__live_message__is_gone_and_its_position_stays_empty(driver: Driver) -> None:
    driver.append(user("first zebra"), said("second"), user("third"), said("fourth"))
    answer = driver.erase(1)
    assert answer.status_code == 200
    assert answer.json()["counts"]["messages"] == 1
    assert answer.json()["counts"]["stubs_left"] == 0
    assert list(driver.originals()) == [2, 3, 4]
    assert [m["content"] for m in driver.context()["messages"]] == ["second", "third", "fourth"]
    body = driver.get()
    assert (body["message_count"], body["last_position"]) == (3, 4)
    assert "zebra" not in driver.texts()
    assert driver.append(user("fifth")).json()["messages"][0]["position"] == 5
    driver.check()


def test_erase__twice__second_is_a_404(driver: Driver) -> None:
    driver.append(user("a"), said("b"))
    assert [driver.erase(1).status_code, driver.erase(1).status_code, driver.erase(9).status_code] == [200, 404, 404]


@pytest.mark.parametrize("position", [2, 3, 4])
def test_erase__message_of_an_exchange__leaves_a_stub(driver: Driver, position: int) -> None:
    driver.append(user("go"), calls("c1", secret="zebra2"), user("zebra3"), result("c1", "zebra4 " * 50), said("done"))
    answer = driver.erase(position).json()
    assert (answer["counts"]["stubs_left"], answer["message_count"]) == (1, 4)
    shown = driver.context()["messages"]
    assert [m["role"] for m in shown] == ["user", "assistant", "tool", "user", "assistant"]
    assert sum(m["content"] == "[deleted]" for m in shown) == 1
    assert f"zebra{position}" not in driver.texts()
    assert position not in driver.originals()
    assert driver.client.get(f"{driver.path}/messages/{position}").status_code == 404
    driver.check()


def test_erase__open_call__its_result_may_still_come(driver: Driver) -> None:
    driver.append(user("go"), calls("c1", secret="zebra"))
    driver.erase(2)
    assert driver.append(result("c1", "found")).status_code == 201
    driver.check()
    assert "zebra" not in driver.texts()


def test_erase__covered_message__makes_the_node_stale_and_its_span_live(driver: Driver) -> None:
    driver.append(*talk(5), user("the secret is zebra.py"), said("noted zebra.py"), *talk(2))
    made = driver.compact()
    assert made["outcome"] == "applied"
    assert "zebra.py" in driver.texts()
    driver.erase(12)
    answer = driver.erase(11).json()
    assert (answer["counts"]["summaries"], answer["counts"]["compactions"]) == (1, 1)
    (node,) = driver.chain()
    assert (node["state"], node["text"], node["sections"]) == ("stale", "", [])
    entry = driver.compaction(made["id"])
    assert (entry["outcome"], entry["summary"], entry["sections"], entry["dropped_content"]) == (
        "applied",
        None,
        [],
        [],
    )
    context = driver.context()
    assert (context["covered"], context["summaries"], context["carried"]) == (None, [], [])
    assert "zebra" not in driver.texts()
    driver.check()


def test_erase__covered_message__revert_is_refused_until_rebuilt(driver: Driver) -> None:
    driver.append(*talk(5))
    first = driver.compact()
    driver.erase(3)
    refused = driver.post(f"/v1/compactions/{first['id']}/revert", {})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "summary_stale")
    second = driver.compact()
    assert second["outcome"] == "applied"
    assert driver.post(f"/v1/compactions/{second['id']}/revert", {}).status_code == 200
    assert driver.context()["covered"] is None
    assert driver.post(f"/v1/compactions/{first['id']}/revert", {}).status_code == 409
    driver.check()


def test_erase__superseded_node_over_it__loses_its_text_too(driver: Driver) -> None:
    driver.append(user("zebra.py " + WORDS), said(WORDS), *talk(4))
    assert driver.compact()["outcome"] == "applied"
    driver.append(*talk(3, "m"))
    assert driver.compact()["outcome"] == "applied"
    assert [node["state"] for node in driver.chain()] == ["superseded", "active"]
    driver.erase(1)
    assert [(node["state"], node["text"]) for node in driver.chain()] == [("stale", ""), ("stale", "")]
    assert "zebra" not in driver.texts()
    driver.check()


def test_erase__later_superseded_span__keeps_the_node_that_is_not_over_it(driver: Driver) -> None:
    driver.append(*talk(4))
    assert driver.compact()["outcome"] == "applied"
    driver.append(*talk(4, "m"))
    second = driver.compact()
    driver.erase(second["to_position"])
    old, new = driver.chain()
    assert (old["state"], bool(old["text"]), new["state"], new["text"]) == ("superseded", True, "stale", "")
    driver.check()


def test_erase__over_the_limit_again__starts_the_rebuild(tenant: Member) -> None:
    policy = {"enabled": True, "reserve_output_tokens": 500, "summary_max_tokens": 200, "target": 0}
    driver = Driver.create(tenant, policy=policy)
    for _ in range(8):
        driver.append(*talk(3))
        run_jobs(tenant)
    node = next(node for node in driver.chain() if node["state"] == "active")
    answer = driver.erase(node["from_position"]).json()
    assert answer["compaction"]["trigger"] == "threshold"
    assert driver.context()["degraded"] is True
    run_jobs(tenant)
    assert driver.context()["degraded"] is False
    assert driver.chain()[-1]["state"] == "active"
    driver.check()


def test_rewind__tail__erases_from_there_and_never_reuses_a_position(driver: Driver) -> None:
    driver.append(*talk(2), user("zebra"), said("zebra too"))
    answer = driver.rewind(5)
    assert answer.status_code == 200
    receipt = answer.json()
    assert (receipt["counts"]["messages"], receipt["message_count"], receipt["last_position"]) == (2, 4, 6)
    assert driver.append(user("again")).json()["messages"][0]["position"] == 7
    assert list(driver.originals()) == [1, 2, 3, 4, 7]
    assert "zebra" not in driver.texts()
    driver.check()


def test_rewind__same_position_again__erases_nothing_more(driver: Driver) -> None:
    driver.append(*talk(2))
    driver.rewind(3)
    assert driver.rewind(3).json()["counts"]["messages"] == 0
    driver.check()


@pytest.mark.parametrize(
    ("query", "code"), [("", "required"), ("?from=5", "out_of_range"), ("?from=0", "invalid"), ("?from=x", "invalid")]
)
def test_rewind__bad_position__is_a_400_that_names_it(driver: Driver, query: str, code: str) -> None:
    driver.append(*talk(2))
    answer = driver.client.delete(f"{driver.path}/messages{query}")
    assert answer.status_code == 400
    assert [(e["code"], e["attr"]) for e in answer.json()["errors"]] == [(code, "from")]


def test_rewind__everything__leaves_an_empty_conversation_to_go_on_with(driver: Driver) -> None:
    driver.append(*talk(3))
    driver.compact()
    assert driver.rewind(1).json()["message_count"] == 0
    assert driver.context()["messages"] == []
    assert driver.append(user("anew"), said("yes")).json()["last_position"] == 8
    driver.check()


def test_rewind__between_parallel_results__the_lost_one_is_open_again(driver: Driver) -> None:
    driver.append(user("go"), calls("x", "y"), result("x", "1"), result("y", "2"), said("done"))
    driver.rewind(4)
    driver.check()
    assert driver.append(result("x", "no")).json()["errors"][0]["code"] == "tool_result_duplicate"
    assert driver.append(user("meanwhile")).status_code == 201
    driver.check()
    assert driver.append(result("y", "2"), said("done")).status_code == 201
    driver.check()


def test_rewind__calls_abandoned_by_what_is_erased__stay_abandoned(driver: Driver) -> None:
    driver.append(user("go"), calls("x", "y"), result("x", "1"), user("never mind"), said("fine"))
    driver.rewind(3)
    driver.check()
    assert [m["role"] for m in driver.context()["messages"]] == ["user", "assistant", "tool", "tool"]
    assert driver.append(result("y", "2")).json()["errors"][0]["code"] == "call_abandoned"
    assert driver.append(user("next"), said("ok")).status_code == 201
    driver.check()


def test_rewind__into_a_covered_span__makes_its_nodes_stale(driver: Driver) -> None:
    driver.append(*talk(3), user("zebra.py"), said("zebra.py"), *talk(2))
    made = driver.compact()
    answer = driver.rewind(7).json()
    assert answer["counts"]["summaries"] == 1
    assert driver.chain()[0]["state"] == "stale"
    assert driver.context()["covered"] is None
    assert driver.compaction(made["id"])["summary"] is None
    assert "zebra" not in driver.texts()
    driver.check()


def test_rewind__stub_after_it__is_gone_as_well(driver: Driver) -> None:
    driver.append(user("go"), calls("x"), result("x", "1"), said("done"))
    driver.erase(3)
    assert driver.rewind(2).json()["counts"]["messages"] == 2
    assert [m["content"] for m in driver.context()["messages"]] == ["go"]
    driver.check()


def test_transcript__after_an_erasure__shows_originals_only(driver: Driver) -> None:
    driver.append(user("go"), calls("x"), result("x", "1"), said("done"), user("zebra"))
    driver.erase(3)
    driver.erase(5)
    lines = driver.client.get(f"{driver.path}/transcript").getvalue().splitlines()
    assert [json.loads(line)["position"] for line in lines] == [1, 2, 4]


@pytest.mark.parametrize("path", ["messages/1", "messages?from=1"])
def test_erase__reader_and_stranger__may_not(driver: Driver, stranger: Member, path: str) -> None:
    driver.append(user("mine"))
    assert client(driver.member.read_key).delete(f"{driver.path}/{path}").status_code == 403
    assert client(stranger.key).delete(f"{driver.path}/{path}").status_code == 404
    assert list(driver.originals()) == [1]


def test_erase__stored_answers__are_forgotten(driver: Driver, tenant: Member) -> None:
    body = {"messages": [user("zebra")], "return_context": True}
    assert driver.post(f"{driver.path}/messages", body, **{"Idempotency-Key": "k"}).status_code == 201
    assert "zebra" in texts_of(tenant)
    assert driver.erase(1).json()["counts"]["idempotency_answers"] == 1
    assert "zebra" not in texts_of(tenant)


def test_erase__first_request_of_an_anthropic_conversation__it_still_begins_with_the_user(tenant: Member) -> None:
    driver = Driver.create(tenant, format="anthropic")
    driver.append(user("zebra"), said("hello"), user("more"), calls("x"), result("x", "1"), said("done"))
    for position in (1, 5, 4):
        assert driver.erase(position).status_code == 200
        driver.check()
    assert driver.context()["messages"][0]["role"] == "user"
    assert "zebra" not in driver.texts()


def test_rewind__everything_of_an_anthropic_conversation__the_assistant_may_begin(tenant: Member) -> None:
    driver = Driver.create(tenant, format="anthropic")
    driver.append(user("one"), said("two"))
    driver.rewind(1)
    assert driver.append(said("I begin")).status_code == 201
    driver.check()
