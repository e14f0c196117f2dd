from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.select import Candidate, is_relative, select, traits
from compaction_service.engine.summary.text import words


def candidates(*texts: str) -> list[Candidate]:
    return [Candidate(traits(text), len(text.split())) for text in texts]


PLAIN = "they all went home together again"


@pytest.mark.parametrize(
    "better",
    [
        "they never all went home together",
        "they all went home together on Monday",
        "they all went home together yesterday",
        "they all went home by 7 again",
        "they all went home in src/app again",
        'they all sang "Brave" together again',
        "they took bread, salt, and honey home again",
        "I went home together again with all",
    ],
)
def test_traits__states_something_precise__worth_more(better: str) -> None:
    assert traits(better).worth > traits(PLAIN).worth == 1


@pytest.mark.parametrize(
    "worse",
    ["did they all go home together?", "you all went home together again", "went home", "if (x[0] == y) { return; }"],
)
def test_traits__questions_flattery_scraps_code__worth_less(worse: str) -> None:
    assert traits(worse).worth < traits(PLAIN).worth


def test_traits__capitals__inside_the_sentence_only() -> None:
    assert traits("Then Anna met Bob in NYC, I think").capitals == ("anna", "bob")


def test_is_relative__words_that_need_a_day__told() -> None:
    assert is_relative(traits("I went yesterday"))
    assert is_relative(traits("我昨天去了"))
    assert not is_relative(traits("On 3 May I went"))


def test_select__repetition__new_words_first() -> None:
    found = candidates("the cat sat on the mat", "the cat sat on a mat", "invoice 4711 is due in Oslo")
    assert select(found, 6) == [2]
    assert select(found, 12) in ([0, 2], [1, 2])


def test_select__names_and_numbers__over_plain_words() -> None:
    found = candidates("they went home again", "they met Zanzibar again", "they had 4711 again")
    assert select(found, 4) != [0]
    assert select(found, 8) == [1, 2]


def test_select__words_kept_elsewhere__worth_less() -> None:
    found = candidates("alpha beta gamma", "delta epsilon zeta")
    assert select(found, 3, seen=words("alpha beta gamma")) == [1]
    assert select(found, 3, seen=words("delta epsilon zeta")) == [0]


def test_select__of_one_group__the_opening_is_paid_once() -> None:
    found = [Candidate(traits(text), 2, group="day", opening=3) for text in ("alpha beta", "gamma delta", "rho tau")]
    assert len(select(found, 6)) == 1
    assert len(select(found, 7)) == 2
    assert len(select(found, 9)) == 3


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(-1, 60))
def test_select__any_sentences__within_budget_ascending_deterministic(texts: list[str], budget: int) -> None:
    found = candidates(*texts)
    kept = select(found, budget)
    assert kept == sorted(set(kept)) == select(found, budget)
    assert sum(found[n].cost for n in kept) <= max(0, budget)


def test_select__many_alike__linear_time() -> None:
    found = candidates(*(f"word{n % 7} word{n % 11} word{n % 13} tail{n % 3}" for n in range(10_000)))
    start = time.process_time()
    select(found, 5_000)
    assert time.process_time() - start < 3
