from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.fit import Fitted, Overflow, fit
from compaction_service.engine.formats import openai
from compaction_service.engine.formats.base import NO_RESULT
from compaction_service.engine.projection import Parts, render
from compaction_service.engine.types import Entry, Summary
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.strategies import OVERHEAD, Step, Store, body_tokens, conversations, count, stored, summary

SYNTHETIC = body_tokens({"role": "tool", "content": NO_RESULT})
SYSTEM, TOOLS = 11, 7


def extract(entries: Sequence[Entry], tokens: int) -> Summary:
    """Fills the tokens it is given, as the worst of summaries would."""
    return summary("abc " * (tokens - OVERHEAD), entries[0].position, entries[-1].position)


def fitted(parts: Parts, budget: int) -> Fitted:
    return fit(
        openai,
        parts,
        budget=budget,
        system_tokens=SYSTEM,
        tools_tokens=TOOLS,
        synthetic_tokens=SYNTHETIC,
        count=count,
        extract=extract,
    )


def recount(parts: Parts) -> int:
    """The tokens of a context counted from what is rendered; a summary by its text, as its node has them."""
    messages = render(openai, parts).messages[len(parts.summaries) :]
    summaries = sum(OVERHEAD + count(node.text) for node in parts.summaries)
    return SYSTEM + TOOLS + summaries + sum(map(body_tokens, messages))


def words(number: int) -> str:
    return "word" * number  # so many tokens


def user(number: int) -> dict[str, Any]:
    return {"role": "user", "content": words(number)}


def assistant(number: int) -> dict[str, Any]:
    return {"role": "assistant", "content": words(number)}


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "bash", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(identifier: str, number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier, "content": words(number)}


def tail(*bodies: dict[str, Any]) -> Parts:
    store = Store(SYNTHETIC)
    for body in bodies:
        store.append(body)
    return Parts(tail=tuple(store.entries))


def test_fit__within_budget__is_the_same_parts() -> None:
    parts = tail(user(10), assistant(10))
    done = fitted(parts, recount(parts))
    assert done.parts is parts
    assert (done.tokens, done.degraded) == (recount(parts), False)


def test_fit__old_results__are_masked_before_anything_is_cut() -> None:
    parts = tail(user(10), call("x"), result("x", 900), assistant(10), call("y"), result("y", 80))
    done = fitted(parts, 200)
    assert [entry.masked for entry in done.parts.tail] == [(), (), (0,), (), (), ()]
    assert done.degraded is True
    assert done.tokens == recount(done.parts)
    assert [entry.masked for entry in parts.tail] == [()] * 6


def test_fit__old_results__the_oldest_are_masked_and_no_more_than_needed() -> None:
    parts = tail(user(10), *(body for id_ in "abcd" for body in (call(id_), result(id_, 300))), assistant(10))
    full = recount(parts)
    for excess, masked in ((1, [3]), (280, [3]), (500, [3, 5]), (800, [3, 5, 7]), (1100, [3, 5, 7, 9])):
        done = fitted(parts, full - excess)
        assert [entry.position for entry in done.parts.tail if entry.masked] == masked
        assert not done.parts.summaries
        assert done.tokens == recount(done.parts) <= full - excess


def test_fit__several_results_in_one_message__only_the_first_are_masked() -> None:
    parts = tail(user(10), call("a", "b"), result("a", 300), result("b", 300), assistant(10))
    both = replace(
        parts.tail[2],
        facts=replace(parts.tail[2].facts, answers=(*parts.tail[2].facts.answers, *parts.tail[3].facts.answers)),
        tokens=parts.tail[2].tokens + parts.tail[3].tokens,
    )
    assert both.mask_oldest(1).masked == (0,)
    assert both.mask_oldest(400).masked == (0, 1)
    assert both.mask_oldest(1).mask_oldest(1).masked == (0, 1)
    assert both.mask_oldest(0).masked == ()


def test_fit__old_exchanges__become_one_summary_and_the_request_is_carried() -> None:
    parts = tail(user(400), assistant(400), user(20), assistant(400), call("x"), result("x", 30))
    done = fitted(parts, 250)
    (node,) = done.parts.summaries
    assert (node.from_position, node.to_position) == (1, 4)
    assert [entry.position for entry in done.parts.carried] == [3]
    assert [entry.position for entry in done.parts.tail] == [5, 6]
    assert recount(done.parts) <= 250


def test_fit__old_exchanges__no_more_are_cut_than_needed() -> None:
    parts = tail(user(400), assistant(400), user(20), assistant(400), user(20))
    done = fitted(parts, 1000)
    assert [entry.position for entry in done.parts.tail] == [2, 3, 4, 5]


def test_fit__pinned_messages__are_neither_masked_nor_summarised() -> None:
    store = Store(SYNTHETIC)
    for body in (call("x"), result("x", 100), assistant(900), user(10)):
        store.append(body)
    store.pin(2)
    done = fitted(Parts(tail=tuple(store.entries)), 300)
    assert [entry.position for entry in done.parts.carried] == [1, 2]
    assert done.parts.carried[1] is store.entries[1]


def test_fit__newest_results__largest_lose_their_middle_and_say_how_much() -> None:
    parts = tail(user(10), call("x", "y", "z"), result("x", 3000), result("y", 2000), result("z", 50))
    done = fitted(parts, 800)
    contents = [message["content"] for message in render(openai, done.parts).messages]
    assert contents[4] == words(50)
    for number, length in ((2, 12000), (3, 8000)):
        match = re.fullmatch(r"((?:word)*w?o?r?)\n\[(\d+) characters left out, position (\d)\]\n(.*)", contents[number])
        assert match is not None
        assert int(match[2]) == length - len(match[1]) - len(match[4])
        assert int(match[3]) == number + 1
    assert 700 < recount(done.parts) <= 800
    assert parts.tail[2].body == result("x", 3000)


def test_fit__newest_message_is_one_huge_answer__loses_its_middle_but_the_request_stays() -> None:
    parts = tail(user(50), assistant(5000))
    done = fitted(parts, 200)
    messages = render(openai, done.parts).messages
    assert messages[0] == user(50)
    assert "characters left out, position 2]" in messages[1]["content"]
    assert 150 < recount(done.parts) <= 200


def test_fit__newest_text_beside_an_image__the_image_stays() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [image, {"type": "text", "text": words(900)}, {"type": "text", "text": words(900)}]
    store = Store()
    store.append(user(20))
    newest = replace(store.append(assistant(1800)), body={"role": "assistant", "content": content})
    done = fitted(Parts(tail=(store.entries[0], newest)), 200)
    first, second = done.parts.tail[1].body["content"]
    assert "characters left out, position 2]" in first["text"]
    assert second is image
    assert newest.body["content"] is content


def test_fit__thousands_of_results_in_one_exchange__fit_in_linear_time() -> None:
    ids = [f"c{number}" for number in range(3000)]
    parts = tail(user(10), call(*ids), *(result(one, 40) for one in ids))
    done = fitted(parts, 100_000)
    assert 90_000 < done.tokens <= 100_000


def test_fit__large_summaries__lose_their_middle() -> None:
    node = summary(words(900), 1, 6)
    parts = Parts(summaries=(node,), tail=tail(user(50)).tail)
    done = fitted(parts, 200)
    assert "characters left out, positions 1 to 6]" in done.parts.summaries[0].text
    assert 150 < recount(done.parts) <= 200


def test_fit__only_the_request_fits__is_all_that_is_left() -> None:
    parts = tail(user(10), assistant(10), user(50), call("x"), result("x", 10))
    budget = SYSTEM + TOOLS + OVERHEAD + 50
    done = fitted(parts, budget)
    assert render(openai, done.parts).messages == [user(50)]
    assert done.tokens == budget


def test_fit__system_tools_and_request_over_budget__overflow_with_the_numbers() -> None:
    parts = tail(user(10), assistant(10), user(50), assistant(10))
    with pytest.raises(Overflow) as caught:
        fitted(parts, SYSTEM + TOOLS + OVERHEAD + 49)
    assert caught.value.numbers == {"budget": 70, "system": 11, "tools": 7, "last_user_request": 53}


def test_fit__newest_message_is_the_request__is_never_shortened() -> None:
    with pytest.raises(Overflow):
        fitted(tail(user(10), assistant(10), user(900)), 300)


def test_fit__summary_has_less_room_than_it_would_like__takes_what_there_is() -> None:
    parts = tail(assistant(2000), user(20), call("x"), result("x", 200))
    budget = recount(parts) - 2003 + 150
    done = fitted(parts, budget)
    assert done.parts.summaries[0].tokens == 150
    assert done.parts.tail == parts.tail[1:]
    assert done.tokens == budget


def test_fit__open_call_before_the_request__counts_with_its_synthetic_result() -> None:
    parts = tail(call("x"), user(50))
    done = fitted(parts, recount(parts) - 1)
    assert render(openai, done.parts).messages == [user(50)]


def test_fit__masked_result_in_the_newest_exchange__is_left_as_it_is() -> None:
    parts = tail(user(10), call("x", "y"), result("x", 900), result("y", 900))
    masked = Parts(tail=(*parts.tail[:2], parts.tail[2].mask_all(), parts.tail[3]))
    done = fitted(masked, 200)
    assert done.parts.tail[2] is masked.tail[2]
    assert 150 < recount(done.parts) <= 200


def test_fit__request_that_holds_results__stays_with_its_call() -> None:
    parts = tail(user(10), assistant(30), call("x"), result("x", 5))
    newest = parts.tail[3]
    both = replace(newest, facts=replace(newest.facts, role="user", request=True))
    done = fitted(Parts(tail=(*parts.tail[:3], both)), SYSTEM + TOOLS + sum(e.tokens for e in parts.tail[2:]))
    assert done.parts.tail == (parts.tail[2], both)


def test_fit__no_request_and_a_newest_exchange_that_is_too_long__is_summarised() -> None:
    long = call("x")
    long["tool_calls"][0]["function"]["arguments"] = words(900)
    parts = tail(assistant(30), long, result("x", 5))
    done = fitted(parts, 200)
    assert (done.parts.tail, len(done.parts.summaries)) == ((), 1)
    assert (done.parts.summaries[0].from_position, done.parts.summaries[0].to_position) == (2, 3)
    assert recount(done.parts) <= 200
    assert done.degraded


def test_fit__request_alone_over_budget__is_told_before_anything_is_summarised() -> None:
    def never(entries: Sequence[Entry], tokens: int) -> Summary:
        raise AssertionError("in vain")

    with pytest.raises(Overflow):
        fit(
            openai,
            tail(user(10), assistant(10), user(900)),
            budget=300,
            system_tokens=SYSTEM,
            tools_tokens=TOOLS,
            synthetic_tokens=SYNTHETIC,
            count=count,
            extract=never,
        )


def test_fit__empty_conversation_over_budget__overflow() -> None:
    with pytest.raises(Overflow):
        fitted(Parts(), SYSTEM)


@given(conversations, st.integers(0, 2500), st.integers(0, 3000), st.data())
def test_fit__any_conversation_and_budget__fits_and_is_valid(
    played: list[Step], budget: int, summarised: int, data: st.DataObject
) -> None:
    store = Store(SYNTHETIC).play(played)
    for position in data.draw(st.lists(st.integers(1, max(1, len(store.entries))), max_size=2)):
        if store.entries:
            store.pin(position)
    nodes = (summary(words(summarised), 0, 0),) if summarised % 2 else ()
    parts = Parts(summaries=nodes, tail=tuple(store.entries))
    request = next((entry for entry in reversed(parts.tail) if entry.facts.request), None)
    floor = SYSTEM + TOOLS + (request.tokens if request else 0)
    if floor > budget:
        with pytest.raises(Overflow):
            fitted(parts, budget)
        return
    if request is None:  # then the newest exchange is the least, and how short it gets is not for this test
        with contextlib.suppress(Overflow):
            assert recount(fitted(parts, budget).parts) <= budget
        return
    done = fitted(parts, budget)
    messages = render(openai, done.parts).messages
    assert done.tokens == recount(done.parts) <= budget
    assert openai_violations(messages) == []
    assert request.body in messages
    assert done.degraded is (done.parts != parts)
    assert parts.tail == tuple(store.entries)


@given(conversations, st.integers(1, 3000))
def test_fit__masks_alone_are_enough__none_could_be_spared_and_the_oldest_have_them(
    played: list[Step], excess: int
) -> None:
    parts = Parts(tail=tuple(stored(played, SYNTHETIC)))
    budget = recount(parts) - excess
    try:
        done = fitted(parts, budget)
    except Overflow:
        return
    if done.parts.summaries or [one.body for one in done.parts.tail] != [one.body for one in parts.tail]:
        return
    savings = [
        (index in new.masked, answer.saving)
        for old, new in zip(parts.tail, done.parts.tail, strict=True)
        for index, answer in enumerate(new.facts.answers)
        if answer.saving > 0 and index not in old.masked
    ]
    hidden = [masked for masked, _ in savings]
    assert hidden == sorted(hidden, reverse=True)
    assert done.tokens + [saving for masked, saving in savings if masked][-1] > budget


@given(conversations)
def test_fit__stored_bodies__are_never_changed(played: list[Step]) -> None:
    entries, again = stored(played, SYNTHETIC), stored(played, SYNTHETIC)
    with contextlib.suppress(Overflow):
        fitted(Parts(tail=tuple(entries)), 100)
    assert [entry.body for entry in entries] == [entry.body for entry in again]
