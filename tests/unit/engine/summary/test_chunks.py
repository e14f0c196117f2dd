from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.chunks import MIN_BUDGET, split, tail_end
from compaction_service.engine.summary.span import SpanMessage

from .build import HOSTILE, Piece, by_chars, dialogue, said


def test_split__everything_fits__one_chunk() -> None:
    chunks = split(dialogue("a", "b", "c"), 1000, by_chars)
    assert [chunk.positions for chunk in chunks] == [(1, 2, 3)]
    assert chunks[0].tokens == by_chars(chunks[0].text)


def test_split__exchanges__stay_together() -> None:
    messages = [
        said(1, "user", "u" * 300, exchange=0),
        said(2, "assistant", Piece("call", "{}", "f", "1"), exchange=1),
        said(3, "tool", Piece("result", "r" * 300, None, "1"), exchange=1),
        said(4, "user", "v" * 300, exchange=2),
    ]
    assert [chunk.positions for chunk in split(messages, 150, by_chars)] == [(1,), (2, 3), (4,)]


def test_split__exchange_over_the_budget__cut_between_its_messages() -> None:
    messages = [said(n, "tool", Piece("result", "r" * 300), exchange=0) for n in (1, 2, 3)]
    assert [chunk.positions for chunk in split(messages, 150, by_chars)] == [(1,), (2,), (3,)]


def test_split__one_message_over_the_budget__pieces_hold_all_of_it() -> None:
    text = " ".join(f"word{n}" for n in range(2000))
    chunks = split([said(1, "user", text)], 200, by_chars)
    assert len(chunks) > 10
    assert all(chunk.positions == (1,) for chunk in chunks)
    assert all(chunk.text.startswith(f"<1 user piece {number}> ") for number, chunk in enumerate(chunks, 1))
    joined = " ".join(chunk.text for chunk in chunks)
    assert all(f"word{n}" in joined for n in range(2000))


def test_split__megabyte_without_a_blank__within_budget() -> None:
    chunks = split([said(1, "tool", Piece("result", "x" * 1_000_000, "bash"))], 4000, by_chars)
    assert sum(chunk.text.count("x") for chunk in chunks) == 1_000_000
    assert all(chunk.tokens <= 4000 for chunk in chunks)


def test_split__times__are_told_where_they_change_and_at_the_start_of_each_chunk() -> None:
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    times = [at, at + timedelta(seconds=59), at + timedelta(minutes=1), None, at + timedelta(minutes=1)]
    messages = [said(n, "user", "u" * 200, at=time, exchange=n) for n, time in enumerate(times, 1)]
    first, second = "<time 2026-01-02T03:04Z>", "<time 2026-01-02T03:05Z>"
    [whole] = split(messages, 1000, by_chars)
    marks = [line if line.startswith("<time") else line.partition(">")[0] + ">" for line in whole.text.splitlines()]
    assert marks == [first, "<1 user>", "<2 user>", second, "<3 user>", "<4 user>", "<5 user>"]
    chunks = split(messages, MIN_BUDGET, by_chars)
    assert len(chunks) > 1
    assert all(chunk.text.startswith("<time") == (chunk.positions[0] != 4) for chunk in chunks)
    assert all(chunk.tokens <= MIN_BUDGET for chunk in chunks)
    tail = tail_end(messages[:2], by_chars, MIN_BUDGET)
    assert tail.startswith(f"{first}\n<")


def test_split__budget_too_small_for_markup__refused() -> None:
    with pytest.raises(ValueError, match="at least 128"):
        split(dialogue("a"), MIN_BUDGET - 1, by_chars)


def test_split__nothing__no_chunks() -> None:
    assert split([], 1000, by_chars) == ()


_TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(), max_size=60),
    st.sampled_from("a好😀<").flatmap(lambda c: st.integers(1, 3000).map(lambda n: c * n)),
)


@given(st.lists(st.tuples(st.lists(_TEXT, max_size=3), st.booleans()), max_size=8), st.integers(MIN_BUDGET, 600))
def test_split__any_messages__every_position_covered_within_budget(
    drawn: list[tuple[list[str], bool]], budget: int
) -> None:
    exchange = 0
    messages: list[SpanMessage] = []
    for position, (texts, joined) in enumerate(drawn, 1):
        exchange += not joined
        messages.append(said(position, "user", *texts, exchange=exchange))
    chunks = split(messages, budget, by_chars)
    assert {p for chunk in chunks for p in chunk.positions} == set(range(1, len(drawn) + 1))
    assert [p for chunk in chunks for p in chunk.positions] == sorted(p for chunk in chunks for p in chunk.positions)
    assert all(by_chars(chunk.text) == chunk.tokens <= budget for chunk in chunks)


def test_tail_end__long_tail__newest_whole_messages_within_the_budget() -> None:
    text = tail_end(dialogue(*(f"message number {n}" for n in range(500))), by_chars, 300)
    assert by_chars(text) <= 300
    assert "message number 499" in text
    assert "message number 1 " not in f"{text} ".replace("\n", " ")


def test_tail_end__one_large_message__its_end() -> None:
    text = tail_end([said(1, "user", "first " + "x " * 20_000 + "last")], by_chars)
    assert by_chars(text) <= 2000
    assert "last" in text
    assert "first" not in text
