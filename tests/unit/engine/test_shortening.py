from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.shortening import Text, shorten_all
from tests.unit.engine.strategies import count, texts


def text_of(value: str, number: int = 1) -> Text:
    return Text(value, count(value), f"position {number}")


def test_shorten_all__nothing_too_much__is_the_same_objects() -> None:
    given_texts = [text_of("word" * 10), text_of("")]
    assert [a is b for a, b in zip(shorten_all(given_texts, 0, count), given_texts, strict=True)] == [True, True]
    assert shorten_all([], 5, count) == []


def test_shorten_all__sizes_differ__the_largest_come_down_to_one_level() -> None:
    sizes = [1000, 600, 40]
    shorter = shorten_all([text_of("word" * size) for size in sizes], 1000, count)
    assert [text.tokens for text in shorter][2] == 40
    assert all(280 < text.tokens <= 300 for text in shorter[:2])


def test_shorten_all__room_for_less_than_the_marker__is_the_marker_alone() -> None:
    (short,) = shorten_all([text_of("word" * 1000, 7)], 4000, count)
    assert short.text == "[4000 characters left out, position 7]"


def test_shorten_all__short_text__is_never_made_longer() -> None:
    text = text_of("word")
    assert shorten_all([text], 100, count) == [text]


@pytest.mark.parametrize("unit", ["a", " ", "\n", "\x00", "\ud800", "😀", "漢", "n", "{x} %s "])
def test_shorten_all__a_megabyte_of_anything__comes_under_its_level(unit: str) -> None:
    text = text_of(unit * (1_000_000 // len(unit)))
    (short,) = shorten_all([text], text.tokens - 500, count)
    assert 400 < short.tokens <= 500


@given(st.lists(texts, max_size=6), st.integers(0, 3000))
def test_shorten_all__any_texts__say_exactly_what_is_missing(values: list[str], excess: int) -> None:
    before = [text_of(value) for value in values]
    after = shorten_all(before, excess, count)
    for old, new in zip(before, after, strict=True):
        assert new.tokens == count(new.text) <= old.tokens
        if new is not old:
            match = re.search(r"\n?\[(\d+) characters left out, position 1\]\n?", new.text)
            assert match is not None
            head, tail = new.text[: match.start()], new.text[match.end() :]
            assert len(head) + int(match[1]) + len(tail) == len(old.text)
            assert old.text.startswith(head)
            assert old.text.endswith(tail)
