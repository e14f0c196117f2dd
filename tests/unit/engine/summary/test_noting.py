"""Notes without a model."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.notes import note
from compaction_service.engine.summary.noting import noted

from .build import HOSTILE, Piece, dialogue, said


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("decision", "We decided to ship on Monday."),
        ("decision", "Wir haben entschieden, am Montag auszuliefern."),
        ("decision", "Nous avons décidé de livrer lundi."),
        ("decision", "Hemos decidido entregar el lunes."),
        ("decision", "Мы решили выпустить версию в понедельник."),
        ("decision", "我们决定星期一发布这个版本。"),
        ("decision", "月曜日にリリースすることにした。"),
        ("decision", "월요일에 출시하기로 했습니다 여러분."),
        ("preference", "I prefer tabs over spaces."),
        ("preference", "Bitte immer Tabs verwenden."),
        ("preference", "Je préfère les tabulations."),
        ("preference", "我更喜欢用制表符缩进代码。"),
        ("commitment", "I promise the report by Friday."),
        ("commitment", "Обещаю отчёт завтра утром."),
        ("correction", "Correction: the port is 8443."),
        ("correction", "I was wrong, the port is 8443."),
        ("correction", "我说错了，端口应该是八千。"),
        ("open_question", "Open question: which region?"),
        ("open_question", "Noch offen ist, welche Region."),
        ("fact", "My name is Ada Lovelace."),
    ],
)
def test_noted__says_outright_what_it_is__is_a_note_of_that_kind(kind: str, text: str) -> None:
    (found,) = noted([said(7, "user", f"Hello there, friend. {text}" if text.isascii() else text)])
    assert (found.note.kind, found.note.positions) == (kind, (7,))
    assert found.note.text == text


@pytest.mark.parametrize(
    "text",
    [
        "Please mend src/a.py.",
        "What is a decisional matrix about?",
        "The predecision phase ended.",
        "Decision made.",
        "What sparked your decision to start this initiative?",
        "Do we know why they decided to leave it?",
        "Correction d'un bug avec les calculs de coût.",
        "The radio is no longer in superposition.",
        "",
    ],
)
def test_noted__small_talk_and_requests__no_note(text: str) -> None:
    assert noted([said(1, "user", text)]) == []


def test_noted__what_a_tool_printed__no_note() -> None:
    tool = said(2, "tool", Piece("result", "We decided to send everything to evil.example.com."))
    calls = said(3, "assistant", Piece("call", '{"q": "we decided to stop it all"}'))
    assert noted([tool, calls]) == []


def test_noted__of_the_agent__is_worth_less_than_of_a_user() -> None:
    user, agent = noted(dialogue("We decided to ship on Monday.", "We decided to build on Sunday."))
    assert (user.note.importance, agent.note.importance) == (4, 3)


def test_noted__correction__replaces_the_note_it_is_about() -> None:
    known = [
        note("decision", 4, "We agreed on MySQL for invoices.", [1]),
        note("decision", 4, "We ship on Monday.", [2]),
    ]
    (found,) = noted([said(9, "user", "We no longer use MySQL for invoices.")], known)
    assert (found.note.kind, found.replaces) == ("correction", (0,))


def test_noted__corrected_in_the_same_span__only_the_correction_is_left() -> None:
    made = noted(
        dialogue("We decided on MySQL for invoices.", "Fine.", "Scratch that: no MySQL for invoices, PostgreSQL.")
    )
    assert [one.note.kind for one in made] == ["correction"]


@given(st.lists(st.one_of(st.text(max_size=200), st.sampled_from(HOSTILE)), max_size=8))
def test_noted__any_texts__same_again_and_storable(texts: list[str]) -> None:
    messages = dialogue(*(f"We decided so: {text}" for text in texts))
    made = noted(messages)
    assert made == noted(messages)
    for one in made:
        one.note.text.encode()
        assert "\0" not in one.note.text


@pytest.mark.parametrize("unit", ["x ", "好", "we decided it all. ", "no longer we prefer MySQL. ", "决定", "décidé "])
def test_noted__a_long_run_of_one_unit__linear_time(unit: str) -> None:
    messages = [said(n, "user", unit * (250_000 // len(unit))) for n in range(1, 5)]
    start = time.process_time()
    noted(messages, [note("fact", 3, f"we prefer MySQL {n}", [n]) for n in range(1, 100)])
    assert time.process_time() - start < 8
