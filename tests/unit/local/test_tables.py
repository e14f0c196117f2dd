"""The tables of a report: as wide as the terminal, and nothing of a text is obeyed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from compaction_service.local import tables
from compaction_service.local.replaying import Reading, Report

NASTY = "[bold]{braces} %s :smile: \x1b[31m\x07 \ud800 日本語 " * 20


def reading(number: int, **changes: Any) -> Reading:
    values: dict[str, Any] = {
        "turn": number,
        "position": number,
        "tokens": 1_000 + number % 50 * 100,
        "tokens_without": 1_000 * number,
        "masked": 0,
        "summaries": 1,
        "compaction": None,
        "waited_s": 0.01,
        "problems": (),
    }
    return Reading(**{**values, **changes})


def compaction(**changes: Any) -> dict[str, Any]:
    return {
        "trigger": "threshold",
        "outcome": "applied",
        "status": "succeeded",
        "reason": None,
        "from_position": 1,
        "to_position": 1_066,
        "context_before": {"tokens": 16_051},
        "context_after": {"tokens": 12_278},
        "passes": [{}],
        "method": "extractive",
        "model": None,
        "queued_ms": 20,
        "duration_ms": 1_234,
        **changes,
    }


def summary(**changes: Any) -> dict[str, Any]:
    node = {"level": 0, "from_position": 1, "to_position": 1_066, "state": "superseded", "tokens": 1_500}
    return {**node, "text": "## Overall Goal\n\n- To fly", **changes}


def report(**changes: Any) -> Report:
    values: dict[str, Any] = {
        "transcript": "airline",
        "api_base": "http://127.0.0.1:8000/v1",
        "conversation": "01a22e5e-15f4-723e-9274-74bbb00cedae",
        "model": "gpt-4o",
        "window": 8_000,
        "limit": 6_000,
        "messages": 300,
        "readings": tuple(reading(number) for number in range(1, 150)),
        "compactions": (compaction(),),
        "summaries": (summary(),),
        "problems": (),
        "seconds": 3.2,
    }
    return Report(**{**values, **changes})


def shown(one: Report, width: int = 80) -> str:
    stream = io.StringIO()
    tables.show(tables.console(stream, width), one)
    return stream.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 81, 120, 300])
def test_show__any_width__no_line_is_longer(width: int) -> None:
    nasty = report(
        compactions=(compaction(model=NASTY), compaction(outcome="irreducible", reason="nothing_to_cover")),
        summaries=(summary(text=NASTY),),
        problems=("x" * 20,),
    )
    assert max(map(cell_len, shown(nasty, width).splitlines())) <= width


def test_show__eighty_columns__every_number_is_whole() -> None:
    text = shown(report())
    for piece in ("16,051 -> 12,278", "threshold", "1-1066", "extractive", "0.02 s", "1.23 s", "superseded", "1,500"):
        assert piece in text


def test_show__written_to_a_file__has_no_control_characters() -> None:
    text = shown(report(compactions=(compaction(model=NASTY),), summaries=(summary(text=NASTY),)))
    assert not [char for char in text if char != "\n" and not char.isprintable()]
    assert "[bold]{braces} %s :smile:" in text


def test_show__a_stream_of_ascii__is_written_in_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    tables.show(tables.console(stream, 80), report())
    stream.flush()
    assert b"#" in raw.getvalue()


def test_show__a_replay_of_nothing__still_has_its_tables() -> None:
    text = shown(report(readings=(), compactions=(), summaries=(), messages=1))
    assert "0 read" in text


def test_show__problems__are_named_up_to_a_number() -> None:
    text = shown(report(readings=tuple(reading(number, problems=("degraded",)) for number in range(1, 13))))
    assert "12 problems:" in text
    assert "context at position 1: degraded" in text
    assert "and 2 more" in text


def test_totals__say_what_was_saved() -> None:
    text = shown(report(readings=(reading(1, tokens=400, tokens_without=1_000), reading(2, tokens=500))))
    assert "900 with the service, 3,000 without" in text
    assert "2,100 tokens, 70%" in text


@given(st.lists(st.integers(0, 10**6)), st.integers(1, 30))
def test_sample__any_readings__few_rows_in_order_with_the_largest(tokens: list[int], rows: int) -> None:
    readings = [reading(number, tokens=value) for number, value in enumerate(tokens)]
    chosen = tables.sample(readings, rows)
    assert len(chosen) == min(rows, len(readings))
    assert [one.position for one in chosen] == sorted({one.position for one in chosen})
    assert not readings or max(tokens) in [one.tokens for one in chosen]


def test_spark__values__are_shares_of_the_top() -> None:
    assert tables.spark([0, 50, 99, 100, 400], 100, 5) == "▁▅███"
    assert tables.spark([0, 50, 99, 0], 100, 2) == "▅█"


def test_where_next__a_service_elsewhere__tells_no_key() -> None:
    lines = "\n".join(tables.where_next(report(api_base="https://example.com/v1"), {}))
    assert "$API_KEY" in lines
    assert "https://example.com/docs" in lines
    assert "https://example.com/v1/conversations/01a22e5e-15f4-723e-9274-74bbb00cedae/context" in lines
    assert "Admin" not in lines
