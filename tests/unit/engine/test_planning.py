from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.exchanges import group
from compaction_service.engine.planning import carried_after_pin, plan
from compaction_service.engine.types import Answer, Entry, Facts, Plan
from tests.unit.engine.strategies import Step, conversations, live, stored

DEFAULTS: dict[str, Any] = {
    "preserve_recent_turns": 1,
    "keep_last_user_request": True,
    "keep_first_user_request": False,
    "target": 0,
    "limit": 1000,
    "room": 1_000_000,
    "fixed_tokens": 0,
    "kept_summaries_tokens": 0,
    "ratio": 8,
    "bound": 4096,
}


def planned(entries: Sequence[Entry] | str, carried_now: Sequence[Entry] = (), **changes: Any) -> Plan:
    entries = live(entries) if isinstance(entries, str) else entries
    return plan(entries, carried_now, **{**DEFAULTS, **changes})


EXAMPLES: list[tuple[str, int, bool, int, int, tuple[int, ...]]] = [
    # live, k, last, covered from, covered to (0: nothing), carried: the table of semantics 5
    ("u1 a2 u3 a4 u5 a6", 1, True, 1, 4, ()),
    ("u1 a2 u3 a4 u5 a6", 20, True, 1, 2, ()),
    ("u1 a2", 1, False, 1, 1, ()),
    ("u1 a2", 1, True, 0, 0, ()),
    ("u1", 1, True, 0, 0, ()),
    ("u1", 1, False, 0, 0, ()),
    ("u1 ac2 t3 a4 u5 ac6 t7 a8", 1, True, 1, 5, (5,)),
    ("u1 ac2(x,y) t3(x) u4 t5(y) a6", 1, True, 1, 1, ()),
    ("ac1 t2", 20, True, 0, 0, ()),
    ("ac1 t2", 20, False, 0, 0, ()),
    ("u1 ac2 t3 ac4 t5 ac6 t7", 20, True, 1, 3, (1,)),
    ("u1 a2", 0, False, 1, 2, ()),
    ("u1 a2 u3", 0, True, 1, 2, ()),
    ("u1 a2 u3", 0, False, 1, 2, ()),
    ("u1 a2 u3 u4 u5", 1, True, 1, 2, ()),
    ("u1 a2 u3 u4 u5", 1, False, 1, 2, ()),
    ("u1 a2 u3 ac4", 0, True, 1, 2, ()),
    ("u1 a2 u3 ac4", 0, False, 1, 2, ()),
    ("u1 ac2 t3 ac4 t5", 0, False, 1, 3, ()),
]


@pytest.mark.parametrize(
    ("script", "k", "last", "first_covered", "last_covered", "carried"),
    EXAMPLES,
    ids=[f"{script} | {k} | {str(last).lower()}" for script, k, last, *_ in EXAMPLES],
)
def test_plan__worked_example__covers_and_carries_as_the_table_says(
    script: str, k: int, last: bool, first_covered: int, last_covered: int, carried: tuple[int, ...]
) -> None:
    entries = live(script)
    result = planned(entries, preserve_recent_turns=k, keep_last_user_request=last)
    covered = tuple(range(first_covered, last_covered + 1)) if last_covered else ()
    assert result.covered == covered
    assert result.kept == tuple(entry.position for entry in entries[len(covered) :])
    assert result.carried == carried
    assert (result.irreducible is None) is bool(covered)


@pytest.mark.parametrize(
    ("script", "changes", "reason"),
    [
        ("", {}, "nothing_live"),
        ("u1", {}, "protected"),
        ("ac1 t2", {}, "protected"),
        ("ac1(x,y) t2(x) u3", {"preserve_recent_turns": 0}, "protected"),
        ("a1", {}, "nothing_older"),
        ("u1 a2", {"up_to": 0}, "nothing_older"),
        ("u1 a2", {}, "only_carried"),
        ("u1! a2! u3 a4", {"up_to": 2}, "only_carried"),
    ],
)
def test_plan__nothing_to_cover__says_why_and_the_floor(script: str, changes: dict[str, Any], reason: str) -> None:
    carried = live("u1!")
    entries = live(script)
    result = planned(
        entries, carried, fixed_tokens=7, kept_summaries_tokens=5, replaced_summaries_tokens=3, limit=16, **changes
    )
    assert result.irreducible == reason
    assert (result.covered, result.from_position, result.to_position) == ((), None, None)
    assert result.kept == tuple(entry.position for entry in entries)
    assert result.carried == (1,)
    assert result.predicted_tokens == 7 + 5 + 3 + 10 + 10 * len(entries)
    assert result.target_reached is False


def test_plan__newest_message_a_completed_response__stays_whatever_the_target() -> None:
    result = planned("u1 a2 u3 a4", target=0.01)
    assert result.kept == (4,)
    assert result.target_reached is False


@pytest.mark.parametrize("changes", [{"preserve_recent_turns": 0}, {"up_to": 4}])
def test_plan__no_turns_preserved__covers_even_the_newest(changes: dict[str, Any]) -> None:
    result = planned("u1 a2 u3 a4", **changes)
    assert result.kept == ()
    assert result.carried == (3,)


@pytest.mark.parametrize(
    ("up_to", "covered"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 5), (6, 5), (9, 5)], ids=str
)
def test_plan__up_to__moves_back_to_an_edge_and_spares_the_protected(up_to: int, covered: int) -> None:
    result = planned("u1 ac2(x,y) t3(y) t4(x) a5 u6", up_to=up_to, keep_last_user_request=False, target=0.001)
    assert len(result.covered) == covered


def test_plan__compact_tool_called__covers_up_to_before_its_exchange_and_carries_the_request() -> None:
    result = planned("u1 a2 u3 ac4", before=4, preserve_recent_turns=20)
    assert (result.covered, result.kept, result.carried) == ((1, 2, 3), (4,), (3,))


def test_plan__positions_with_holes__up_to_counts_positions() -> None:
    assert planned("u3 a7 u8 a12", up_to=9, keep_last_user_request=False).covered == (3, 7, 8)


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        (0, (3, 4, 5, 6, 7, 8)),
        (0.16, (3, 4, 5, 6, 7, 8)),
        (0.159, (5, 6, 7, 8)),
        (0.139, (6, 7, 8)),
        (0.129, (8,)),
        (0.05, (8,)),
    ],
)
def test_plan__over_its_target__gives_up_kept_exchanges_oldest_first(target: float, kept: tuple[int, ...]) -> None:
    """The summary counts 100 of a limit of 1000, each message shown 10, the carried request u6 too."""
    result = planned("u1 a2 ac3 t4 a5 u6 a7 a8", preserve_recent_turns=3, target=target)
    assert result.kept == kept
    assert result.target_reached is (target != 0.05)


@pytest.mark.parametrize(("room", "kept"), [(600, (3, 4, 5, 6)), (599, (3, 4, 5, 6)), (499, (4, 5, 6)), (300, (5, 6))])
def test_plan__no_target_and_over_the_room__gives_up_kept_exchanges_until_it_fits(
    room: int, kept: tuple[int, ...]
) -> None:
    """Six messages of 100 tokens, the summary counts 100: u1 a2 covered leaves 500."""
    entries = live("u1 a2 u3 a4 u5 a6", tokens=100)
    result = planned(entries, preserve_recent_turns=20, keep_last_user_request=False, limit=100, room=room)
    assert result.kept == kept


def test_plan__over_its_target__never_gives_up_the_protected() -> None:
    result = planned("u1 a2 u3 a4 u5 u6", preserve_recent_turns=20, target=0.01)
    assert result.covered == (1, 2, 3, 4)


def test_plan__cut_covers_only_what_is_carried__moves_forward_to_another_message() -> None:
    result = planned("u1! u2! a3 u4 a5 u6 a7", preserve_recent_turns=3)
    assert (result.covered, result.carried) == ((1, 2, 3), (1, 2))


def test_plan__carried__pins_and_requests_bring_their_whole_exchange_in_order() -> None:
    result = planned("u1 a2 ac3 t4! a5 ac6(y,z) t7(y) u8 t9(z) a10 ac11 t12 a13", keep_first_user_request=True)
    assert result.carried == (1, 3, 4, 6, 7, 8, 9)
    assert result.kept == (11, 12, 13)


def test_plan__carried_now__keeps_pins_and_drops_the_request_that_is_no_longer_the_last() -> None:
    carried_now = live("u1 ac2 t3! u5")
    result = planned("a6 u7 a8 u9 a10", carried_now, preserve_recent_turns=1)
    assert result.covered == (6, 7, 8)
    assert result.carried == (2, 3)


def test_plan__freed__are_what_is_shown_today_and_no_more() -> None:
    """Of the span what stays carried is not freed; of what is carried today, a request with a successor is."""
    result = planned(live("a6 u7 a8 u9 a10", tokens=10), live("u5", tokens=5000))
    assert (result.covered, result.carried, result.span_tokens) == ((6, 7, 8), (), 30)
    assert result.freed_tokens == 5030
    result = planned(live("ac6 t7 ac8 t9 ac10 t11", tokens=10), live("u5", tokens=5000))
    assert (result.carried, result.freed_tokens) == ((5,), result.span_tokens)
    assert planned("u1 a2").freed_tokens == 0


def test_plan__carried_now_holds_the_last_request__stays() -> None:
    assert planned("ac6 t7 ac8 t9 ac10 t11", live("u5")).carried == (5,)


def test_plan__keep_first__is_the_oldest_request_known() -> None:
    result = planned("a6 u7 a8 u9 a10", live("u2 u5"), keep_first_user_request=True, keep_last_user_request=False)
    assert result.carried == (2,)


def test_plan__numbers__count_the_context_with_the_summary_at_its_target() -> None:
    entries = live("u1 a2 u3 a4 u5 a6", tokens=1000)
    result = planned(
        entries,
        live("u0!", tokens=40),
        limit=9000,
        fixed_tokens=300,
        kept_summaries_tokens=50,
        replaced_summaries_tokens=800,
    )
    assert result.span_tokens == 4000
    assert result.summary_target == 800 + 4000 / 8
    assert result.predicted_tokens == 300 + 50 + 1300 + 40 + 2000
    assert result.target_reached is True


@pytest.mark.parametrize(("bound", "ratio", "expected"), [(4096, 8, 500), (64, 8, 64), (4096, 400, 100), (99, 400, 99)])
def test_plan__summary_target__between_one_hundred_and_the_bound(bound: int, ratio: float, expected: int) -> None:
    entries = live("u1 a2 u3 a4 u5 a6", tokens=1000)
    assert planned(entries, bound=bound, ratio=ratio).summary_target == expected


def test_plan__masked_results__count_as_they_are_shown() -> None:
    entries = live("ac1 t2 a3 u4 a5", tokens=50)
    masked = replace(entries[1], facts=Facts("tool", answers=(Answer("x", saving=45),)), masked=(0,))
    assert planned([entries[0], masked, *entries[2:]]).span_tokens == 50 + 5 + 50


@given(
    conversations,
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 0.01, 0.5]),
    st.one_of(st.none(), st.integers(0, 45)),
)
def test_plan__any_conversation__is_a_partition_at_an_edge_that_spares_the_protected(
    played: list[Step], k: int, last: bool, first: bool, target: float, up_to: int | None
) -> None:
    entries = stored(played)
    result = planned(
        entries,
        preserve_recent_turns=k,
        keep_last_user_request=last,
        keep_first_user_request=first,
        target=target,
        up_to=up_to,
    )
    assert [*result.covered, *result.kept] == [entry.position for entry in entries]
    cut = len(result.covered)
    assert cut in {0, *(exchange.end for exchange in group(entries))}
    assert bool(result.covered) is (result.irreducible is None)
    assert set(result.carried) < set(result.covered) or not result.covered
    after = {*result.carried, *result.kept}
    assert result.freed_tokens == sum(entry.shown_tokens for entry in entries if entry.position not in after)
    newest_answer = max((i for i, entry in enumerate(entries) if entry.facts.role == "assistant"), default=-1)
    for entry in entries[newest_answer + 1 :]:
        if entry.facts.request or entry.facts.answers:
            assert entry.position not in result.covered
    for exchange in group(entries):
        if exchange.open:
            assert cut <= exchange.start
    if k > 0 and up_to is None and entries:
        assert entries[-1].position in result.kept


@pytest.mark.parametrize(
    ("carried", "script", "requests", "expected"),
    [
        ((2,), "ac4 t5!", (), (2, 4, 5)),
        ((2, 4, 5, 9), "ac4 t5", (), (2, 9)),
        ((2, 4, 5), "ac4! t5", (), (2, 4, 5)),
        ((2, 9), "u9", (9,), (2, 9)),
        ((2,), "u9", (), (2,)),
    ],
    ids=["pin", "unpin", "another pin in the exchange", "still the last request", "never carried"],
)
def test_carried_after_pin__exchange__comes_and_goes_as_a_whole(
    carried: tuple[int, ...], script: str, requests: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert carried_after_pin(carried, live(script), requests) == expected
