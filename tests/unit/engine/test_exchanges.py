from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from compaction_service.engine.exchanges import (
    edge_before,
    exchange_at,
    group,
    last_completed,
    last_index,
    pair,
    protected_from,
)
from compaction_service.engine.types import Exchange
from tests.unit.engine.strategies import Step, conversations, live, stored


@pytest.mark.parametrize(
    ("script", "spans"),
    [
        ("", []),
        ("u1 a2", [(0, 1), (1, 2)]),
        ("u1 ac2 t3 a4", [(0, 1), (1, 3), (3, 4)]),
        ("ac1(x,y) t2(y) t3(x) a4", [(0, 3), (3, 4)]),
        ("ac1(x,y) t2(x) u3 t4(y) a5", [(0, 4), (4, 5)]),
        ("ac1(x) u2 u3", [(0, 1), (1, 2), (2, 3)]),
        ("ac1(x) t2(x) ac3(x) t4(x)", [(0, 2), (2, 4)]),
        ("ac1(x) ac2(y) t3(x) t4(y)", [(0, 4)]),
        ("ac1(x) ac2(y) t3(y) t4(x)", [(0, 4)]),
        ("ac1(x) ac2(x) t3(x)", [(0, 1), (1, 3)]),
    ],
)
def test_group__calls_and_results__one_exchange_from_call_to_last_result(
    script: str, spans: list[tuple[int, int]]
) -> None:
    assert [(exchange.start, exchange.end) for exchange in group(live(script))] == spans


def test_group__call_without_result__is_open() -> None:
    assert group(live("ac1(x,y) t2(x)")) == (Exchange(0, 2, open=True, seen=False),)


def test_group__abandoned_call_without_result__is_not_open() -> None:
    call, request = live("ac1 u2")
    assert [exchange.open for exchange in group([replace(call, abandoned=True), request])] == [False, False]


@pytest.mark.parametrize(
    ("script", "seen"),
    [("ac1 t2", False), ("ac1 t2 u3", False), ("ac1 t2 a3", True), ("ac1 t2 ac3(y) t4(y)", True), ("u1", True)],
)
def test_group__results__are_seen_once_an_assistant_message_follows(script: str, seen: bool) -> None:
    assert group(live(script))[0].seen is seen


def test_pair__id_used_again__pairs_with_the_nearest_earlier_open_call() -> None:
    pairing = pair(live("ac1(x) ac2(x) t3(x) t4(x)"))
    assert pairing.results == {1: [2], 0: [3]}
    assert pairing.unanswered == {}


def test_pair__result_without_a_call__belongs_to_nothing() -> None:
    assert pair(live("t1(x) ac2(x)")).caller == {}


def test_edge_before__cut_inside_an_exchange__moves_back() -> None:
    exchanges = group(live("u1 ac2 t3 a4"))
    assert [edge_before(exchanges, cut) for cut in range(-1, 6)] == [0, 0, 1, 1, 2, 3, 3]
    assert [exchange_at(exchanges, index) for index in range(4)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("u1 a2", 2),
        ("u1 a2 u3 d4 u5", 2),
        ("u1 a2 u3 ac4", 3),
        ("u1 ac2 t3 u4", 1),
        ("u1 ac2 t3 ac4 t5 u6", 2),
        ("ac1 t2(x) u3 a4", 3),
    ],
)
def test_protected_from__open_unseen_or_unanswered__first_of_them(script: str, count: int) -> None:
    entries = live(script)
    assert protected_from(entries, group(entries)) == count


@pytest.mark.parametrize(
    ("script", "count"),
    [("", 0), ("u1", 0), ("u1 a2 u3", 2), ("u1 ac2 t3", 0), ("u1 ac2 t3 ac4 t5", 2), ("a1 u2 ac3 t4 ac5(y)", 3)],
)
def test_last_completed__response_or_seen_tools__the_later(script: str, count: int) -> None:
    entries = live(script)
    assert last_completed(entries, group(entries)) == count


def test_last_index__no_such_role__is_minus_one() -> None:
    assert last_index(live("u1 u2"), role="assistant") == -1
    assert last_index(live("u1 u2"), role="user") == 1


@given(conversations)
def test_group__any_conversation__is_a_partition_with_every_pair_inside(played: list[Step]) -> None:
    entries = stored(played)
    exchanges = group(entries)
    assert [i for exchange in exchanges for i in range(exchange.start, exchange.end)] == list(range(len(entries)))
    for result, call in pair(entries).caller.items():
        assert exchange_at(exchanges, result) == exchange_at(exchanges, call)
    for exchange in exchanges:
        if exchange.end - exchange.start > 1:
            assert entries[exchange.start].facts.calls
