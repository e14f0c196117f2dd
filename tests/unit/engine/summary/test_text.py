from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.text import clean, edge, pieces, sentences, words

from .build import HOSTILE


def test_clean__nul_and_surrogates__encodable_text() -> None:
    assert clean("a\0b \ud83d\ude00 \ud83d") == "ab 😀 \ufffd"


@given(st.text(st.characters()))
def test_clean__any_text__encodes_and_is_stable(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See Dr. Smith at 3.14 p.m. Then go.", ["See Dr. Smith at 3.14 p.m.", "Then go."]),
        ("你好。我叫王。今天很好！", ["你好。", "我叫王。", "今天很好！"]),
        ("مرحبا. كيف حالك؟ نعم.", ["مرحبا.", "كيف حالك؟", "نعم."]),
        ("def f():\n    return 1\n", ["def f():", "return 1"]),
        ("\x1b[31mred\x1b[0m", ["red"]),
    ],
)
def test_sentences__several_scripts__their_own_edges(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentences__no_break_space_before_an_initial__no_panic() -> None:
    assert sentences("M.\u00a0B. est là. Bien.")[-1] == "Bien."


@pytest.mark.parametrize("text", HOSTILE)
def test_sentences__hostile_text__clean_and_short(text: str) -> None:
    for sentence in sentences(text):
        assert sentence.strip() == sentence
        assert 0 < len(sentence) <= 600
        sentence.encode()


@pytest.mark.parametrize(
    "unit", ["a", " ", ".", "«a. ", "''", "（。", "』。", "“a. ", "\n", "<", "好", "😀", "e\u0301", "`", "{", "1."]
)
def test_sentences_and_words__a_long_run_of_one_unit__linear_time(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    start = time.process_time()
    sentences(text)
    words(text)
    assert time.process_time() - start < 3


@given(st.text(), st.integers(1, 20))
def test_pieces__any_text__joined_give_the_text(text: str, size: int) -> None:
    cut = pieces(text, size)
    assert "".join(cut) == text
    assert all(len(piece) <= size for piece in cut)


def test_edge__inside_a_cluster__moves_before_it() -> None:
    family = "ab👨\u200d👩c"
    assert edge(family, 4) == 2
    assert edge("xe\u0301y", 2) == 1
    assert edge("abc", 2) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP", ["don", "t", "stop"]),
        ("我们走", ["我们", "们走"]),
        ("用foo吧", ["用", "foo", "吧"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
    ],
)
def test_words__several_scripts__words_or_pairs(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_sentences__line_of_many_short_ones__cuts_none_of_them() -> None:
    given = [f"Item {n} costs {n * 7} euros and must stay in stock." for n in range(200)]
    assert sentences(" ".join(given)) == given
