from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from compaction_service.engine.formats import openai
from compaction_service.engine.formats.base import NO_RESULT
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.types import Entry
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.strategies import Step, Store, body_tokens, conversations, live, stored, summary

SYNTHETIC = body_tokens({"role": "tool", "content": NO_RESULT})


def bodies(script: str) -> tuple[Entry, ...]:
    """Messages in the notation of semantics 5, each with the body OpenAI would have for it."""
    return tuple(replace(entry, body=_body(entry)) for entry in live(script))


def _body(entry: Entry) -> dict[str, Any]:
    facts = entry.facts
    if facts.answers:
        return {"role": "tool", "tool_call_id": facts.answers[0].id, "content": f"result {entry.position}"}
    body: dict[str, Any] = {"role": facts.role, "content": f"text {entry.position}"}
    if facts.calls:
        function = {"name": "bash", "arguments": "{}"}
        body["tool_calls"] = [{"id": call.id, "type": "function", "function": function} for call in facts.calls]
    return body


def positions(origins: list[tuple[int, ...]]) -> Iterator[int | None]:
    """Of the messages of a format that never merges any: None where one was made for the context."""
    for origin in origins:
        assert len(origin) <= 1
        yield origin[0] if origin else None


def shown(entries: tuple[Entry, ...]) -> list[int | None]:
    rendered = render(openai, Parts(tail=entries))
    assert openai_violations(rendered.messages) == []
    return [*positions(rendered.origins)]


@pytest.mark.parametrize(
    ("script", "origins"),
    [
        ("u1 a2", [1, 2]),
        ("u1 ac2(x,y) t3(x) u4 t5(y) a6", [1, 2, 3, 5, 4, 6]),
        ("ac1(x,y)", [1]),
        ("ac1(x,y) t2(y)", [1, 2]),
        ("ac1(x,y) u2", [1, None, None, 2]),
        ("ac1(x,y) t2(y) u3 u4", [1, 2, None, 3, 4]),
        ("ac1(x,y) u2 t3(x)", [1, 3, None, 2]),
        ("ac1(x,y) u2 t3(x) t4(y)", [1, 3, 4, 2]),
        ("ac1(x) t2(x) ac3(x) t4(x) ac5(x)", [1, 2, 3, 4, 5]),
        ("ac1(x) ac2(y) t3(x) t4(y)", [1, 3, 2, 4]),
    ],
)
def test_render__calls_and_results__every_call_answered_before_the_next_message(
    script: str, origins: list[int | None]
) -> None:
    assert shown(bodies(script)) == origins


def test_render__one_message_with_results_of_two_messages__is_shown_once() -> None:
    assert render(openai, Parts(tail=bodies("ac1(x) ac2(y) t3(x,y) a4"))).origins == [(1,), (2,), (3,), (4,)]


def test_render__abandoned_call_at_the_very_end__has_a_synthetic_result() -> None:
    (call,) = bodies("ac1(x)")
    rendered = render(openai, Parts(tail=(replace(call, abandoned=True),)))
    assert rendered.messages[1:] == [{"role": "tool", "tool_call_id": "x", "content": NO_RESULT}]


def test_render__open_call_then_abandoned__reads_the_same() -> None:
    call, request, answer = bodies("ac1(x) u2 a3")
    before = render(openai, Parts(tail=(call, request))).messages
    after = render(openai, Parts(tail=(replace(call, abandoned=True), request, answer))).messages
    assert after[:-1] == before


def test_render__all_parts__in_order_and_by_reference() -> None:
    carried, tail = bodies("u1"), bodies("a5 u6")
    nodes = (summary("first", 1, 2), summary("second", 3, 4))
    parts = Parts("Be brief.", None, nodes, carried, tail, summary_prefix="[compressed] ")
    rendered = render(openai, parts)
    assert rendered.system is None
    assert rendered.messages[0] == {"role": "system", "content": "Be brief."}
    assert [node.text in rendered.messages[i]["content"] for i, node in enumerate(nodes, 1)] == [True, True]
    assert all(rendered.messages[i]["content"].startswith("[compressed] ") for i in (1, 2))
    assert [message for message, entry in zip(rendered.messages[3:], carried + tail, strict=True)] == [
        entry.body for entry in carried + tail
    ]
    assert all(a is b.body for a, b in zip(rendered.messages[3:], carried + tail, strict=True))
    assert rendered.origins == [(), (), (), (1,), (5,), (6,)]


def test_render__masked_result__is_the_placeholder_and_the_body_is_untouched() -> None:
    call, result = bodies("ac1(x) t2(x)")
    named = replace(result.facts, answers=(replace(result.facts.answers[0], name="bash"),))
    masked = replace(result, facts=named, masked=(0,))
    assert render(openai, Parts(tail=(call, masked))).messages[1]["content"] == "[Previous: used bash]"
    assert result.body["content"] == "result 2"


def test_part_tokens__synthetic_results__count_where_they_are_shown() -> None:
    def tail_tokens(script: str) -> int:
        counted = part_tokens(Parts(tail=bodies(script)), system_tokens=0, tools_tokens=0, synthetic_tokens=7)
        return counted["tail"]

    assert tail_tokens("ac1(x,y)") == 10
    assert tail_tokens("ac1(x,y) u2") == 20 + 2 * 7
    assert tail_tokens("ac1(x,y) t2(y) u3") == 30 + 7


def test_part_tokens__each_part__on_its_own() -> None:
    parts = Parts(summaries=(summary("abcd", 1, 2),), carried=bodies("u1"), tail=bodies("a3 u4"))
    counted = part_tokens(parts, system_tokens=3, tools_tokens=4, synthetic_tokens=7)
    assert counted == {"system": 3, "tools": 4, "summaries": parts.summaries[0].tokens, "carried": 10, "tail": 20}


@given(conversations)
def test_render__any_conversation__is_valid_and_costs_what_was_counted(played: list[Step]) -> None:
    parts = Parts(tail=tuple(stored(played, SYNTHETIC)))
    rendered = render(openai, parts)
    assert openai_violations(rendered.messages) == []
    assert sorted(p for origin in rendered.origins for p in origin) == [entry.position for entry in parts.tail]
    counted = part_tokens(parts, system_tokens=0, tools_tokens=0, synthetic_tokens=SYNTHETIC)
    assert counted["tail"] == sum(map(body_tokens, rendered.messages))


@given(conversations)
def test_render__each_append__leaves_what_was_shown_before(played: list[Step]) -> None:
    store = Store()
    before: list[Any] = []
    for step in played:
        length = len(store.entries)
        store.step(step)
        after = render(openai, Parts(tail=tuple(store.entries))).messages
        appended = len(store.entries) > length
        moved = appended and store.entries[-1].facts.answers and after[-1] is not store.entries[-1].body
        assert moved or after[: len(before)] == before
        before = after
