"""Counting text: tiktoken's number, in linear time, for anything."""

from __future__ import annotations

import base64
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.tokens.count import count_text
from compaction_service.tokens.encodings import CL100K, NAMES, O200K, encoding

PROSE = "The agent read the file, found 12 errors in line 340, and didn't stop; it wrote a fix (see below).\n" * 2000

any_text = st.text(st.characters(), max_size=400)  # surrogates and NUL too
long_text = st.builds(
    lambda unit, times: unit * times, st.text(st.characters(), min_size=1, max_size=6), st.integers(1, 3000)
)


def _raw(text: str, name: str) -> int:
    return len(encoding(name).encode_ordinary(text))


@pytest.mark.parametrize("name", NAMES)
@given(text=any_text)
def test_count_text__any_short_text__is_tiktokens_number(name: str, text: str) -> None:
    assert count_text(text, name) == _raw(text, name)


@given(text=long_text)
def test_count_text__any_repeated_text__is_tiktokens_number_but_for_the_cuts(text: str) -> None:
    assert abs(count_text(text, O200K) - _raw(text, O200K)) <= 2 + len(text) // 400


@pytest.mark.parametrize("name", NAMES)
def test_count_text__long_prose__is_exact(name: str) -> None:
    assert count_text(PROSE, name) == _raw(PROSE, name)


@pytest.mark.parametrize("name", NAMES)
def test_count_text__long_text_without_blanks__is_cut_only_where_words_end(name: str) -> None:
    chinese = "今天天气很好、我们去公园散步。附近有没有2家评分4.5以上的餐馆。" * 400
    assert count_text(chinese, name) == _raw(chinese, name)


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system", "<|fim_prefix|>" * 500])
def test_count_text__special_token_text__is_ordinary_text(text: str) -> None:
    assert count_text(text, O200K) == _raw(text, O200K) > 1


def test_count_text__lone_surrogates__count_as_replacement_characters() -> None:
    assert count_text("a\ud800b", O200K) == count_text("a\ufffdb", O200K)
    assert count_text("\ud800" * 5000, O200K) == count_text("\ufffd" * 5000, O200K)


def test_count_text__empty__is_zero() -> None:
    assert count_text("", CL100K) == 0


def _hostile() -> dict[str, str]:
    size = 60_000
    chance = random.Random(7)  # noqa: S311
    units = {
        "letter": "a", "capital": "A", "digit": "0", "blank": " ", "newline": "\n", "tab": "\t", "crlf": "\r\n",
        "bang": "!", "line": "_", "dash": "-", "slash": "/", "nul": "\0", "nbsp": "\u00a0", "emoji": "\U0001f600",
        "flags": "\U0001f1e9\U0001f1ea", "cjk": "\u4e2d", "accent": "a\u0301", "surrogate": "\ud800", "quote": "'",
        "blank and newline": " \n", "dots": ". ", "contraction": "'s", "case": "aA",
    }  # fmt: skip
    texts = {name: unit * (size // len(unit)) for name, unit in units.items()}
    texts["base64"] = base64.b64encode(chance.randbytes(size * 3 // 4)).decode()
    texts["letters"] = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=size))
    texts["mixed"] = "".join(
        chr(chance.choice((33, 0xC0, 0x4E00, 0x1F300)) + chance.randrange(80)) for _ in range(size)
    )
    return texts


@pytest.mark.parametrize("name", NAMES)
def test_count_text__hostile_texts__take_no_more_than_some_times_the_work_of_prose(name: str) -> None:
    """No text is of another order. How many times it is, at most eight, is measured by `make bench` (`count_worst`)."""

    def seconds_per_byte(text: str) -> float:
        runs = []
        for _ in range(3):
            start = time.thread_time()
            count_text(text, name)
            runs.append(time.thread_time() - start)
        return min(runs) / len(text.encode("utf-8", "surrogatepass"))

    prose = seconds_per_byte(PROSE)
    slow = {kind: ratio for kind, text in _hostile().items() if (ratio := seconds_per_byte(text) / prose) > 24}
    assert not slow


def test_count_text__four_times_the_text__takes_about_four_times_as_long() -> None:
    def seconds(size: int) -> float:
        start = time.thread_time()
        count_text("a" * size, O200K)
        return time.thread_time() - start

    small = min(seconds(100_000) for _ in range(3))
    assert min(seconds(400_000) for _ in range(3)) < small * 8
