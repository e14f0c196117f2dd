"""A conversation's life in random order, edits included: the invariants hold after each step (semantics 1 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from compaction_service.conversations.models import Message
from tenants.scope import tenant_scope
from tests.conftest import Member
from tests.integration.conversations.drive import SMALL, Driver, calls, result, said, texts_of, user

WORDS = "The build fails in the parser and must be mended before the release. " * 3
KINDS = ("request", "response", "call", "result", "late result")
HARMLESS = {"call_abandoned", "tool_result_without_call", "tool_result_duplicate"}


class Lifecycle(RuleBasedStateMachine):
    """Every message has a mark of its own; once no conversation has the message, no row may have its mark."""

    def __init__(self, member: Member) -> None:
        super().__init__()
        self.member = member
        self.drivers: list[Driver] = []
        self.marks = 0

    @initialize(
        strategy=st.sampled_from(["sliding", "hierarchical", "hybrid"]),
        format_=st.sampled_from(["openai", "anthropic"]),
    )
    def create(self, strategy: str, format_: str) -> None:
        masks = {"mask_min_reclaim_tokens": 0, "keep_tool_results": 1, "mask_min_chars": 20}
        policy = {**SMALL["policy"], **masks, "strategy": strategy}
        self.drivers = [Driver.create(self.member, format=format_, policy=policy)]

    def driver(self, number: int) -> Driver:
        return self.drivers[number % len(self.drivers)]

    def message(self, kind: str) -> Any:
        self.marks += 1
        mark = f"src/m{self.marks}x.py"
        if kind == "call":
            return calls(f"c{self.marks}", f"d{self.marks}", secret=mark)
        if kind == "result":
            return result(f"c{self.last_call}", f"{mark} {WORDS}")
        if kind == "late result":
            return result(f"d{self.last_call}", f"{mark} {WORDS}")
        return (
            user(f"Look at {mark}. We decided to keep {mark}. {WORDS}")
            if kind == "request"
            else said(f"I changed {mark}. {WORDS}")
        )

    last_call = 0

    @rule(number=st.integers(0, 9), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=8))
    def append(self, number: int, kinds: list[str]) -> None:
        driver = self.driver(number)
        for kind in ("request", *kinds, "response"):
            answer = driver.append(self.message(kind))
            if kind == "call":
                self.last_call = self.marks
            refused = answer.status_code == 400 and answer.json()["errors"][0]["code"] in HARMLESS
            assert answer.status_code == 201 or refused, answer.content
        self.check(driver)

    @rule(number=st.integers(0, 9), turns=st.integers(0, 2), up_to=st.one_of(st.none(), st.integers(0, 99)))
    def compact(self, number: int, turns: int, up_to: int | None) -> None:
        driver = self.driver(number)
        last = driver.get()["last_position"]
        asked = {} if up_to is None or not last else {"up_to": 1 + up_to % last}
        before = driver.get()["meter"]["tokens"]
        ended = driver.compact(preserve_recent_turns=turns, **asked)
        assert ended["outcome"] in ("applied", "skipped", "irreducible")
        after = driver.get()["meter"]["tokens"]
        assert after < before if ended["outcome"] == "applied" else after == before
        self.check(driver)

    @rule(number=st.integers(0, 9))
    def revert(self, number: int) -> None:
        driver = self.driver(number)
        listed = driver.client.get(f"/v1/compactions?conversation={driver.id}&outcome=applied").json()["data"]
        shown = {node["compaction"] for node in driver.chain() if node["state"] == "active"}
        for one in [row["id"] for row in listed if row["reverted_at"] is None]:
            answer = driver.post(f"/v1/compactions/{one}/revert", {})
            assert answer.status_code == (200 if one in shown else 409)
            if one in shown:  # the newest that is: nothing bars it
                break
        self.check(driver)

    @rule(number=st.integers(0, 9), place=st.integers(0, 99), pinned=st.booleans())
    def pin(self, number: int, place: int, pinned: bool) -> None:
        driver, position = self.place(number, place)
        path = f"{driver.path}/messages/{position}"
        answer = driver.client.patch(path, {"pinned": pinned}, content_type="application/json")
        assert answer.status_code in (200, 404)
        self.check(driver)

    @rule(number=st.integers(0, 9), place=st.integers(0, 99))
    def erase(self, number: int, place: int) -> None:
        driver, position = self.place(number, place)
        there = position in driver.originals()
        assert driver.erase(position).status_code == (200 if there else 404)
        assert position not in driver.originals()
        self.check(driver)

    @rule(number=st.integers(0, 9), place=st.integers(0, 99))
    def rewind(self, number: int, place: int) -> None:
        driver, position = self.place(number, place)
        before, last = driver.originals(), driver.get()["last_position"]
        assert driver.rewind(position).status_code == (200 if last else 400)
        assert driver.originals() == {at: message for at, message in before.items() if at < position}
        assert driver.get()["last_position"] == last
        self.check(driver)

    @precondition(lambda self: len(self.drivers) < 3)
    @rule(number=st.integers(0, 9), place=st.integers(0, 99))
    def fork(self, number: int, place: int) -> None:
        driver, position = self.place(number, place)
        answer = driver.fork(position)
        if not driver.get()["last_position"]:
            assert answer.status_code == 400
            return
        assert answer.status_code == 201, answer.content
        made = driver.of(answer.json()["id"])
        assert made.originals() == {at: one for at, one in driver.originals().items() if at <= position}
        self.drivers.append(made)
        self.check(driver)
        self.check(made)

    def place(self, number: int, place: int) -> tuple[Driver, int]:
        driver = self.driver(number)
        return driver, 1 + place % max(1, driver.get()["last_position"])

    def check(self, driver: Driver) -> None:
        driver.check()
        stored = texts_of(self.member)
        with tenant_scope(self.member.id):
            standing = "\n".join(Message.objects.filter(erased_at=None).values_list("body", flat=True))
        marks = [f"m{number}x" for number in range(1, self.marks + 1)]
        assert [mark for mark in marks if mark in stored and mark not in standing] == []


@pytest.mark.usefixtures("by_hand")
def test_conversation__any_life_with_edits__keeps_the_invariants(make_tenant: Callable[[], Member]) -> None:
    class OfItsOwn(Lifecycle):
        def __init__(self) -> None:
            super().__init__(make_tenant())

    run_state_machine_as_test(OfItsOwn, settings=settings(max_examples=8, stateful_step_count=12, deadline=None))
