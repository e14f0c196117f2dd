"""The definitions of the figures, on texts where they can be worked out by hand."""

from __future__ import annotations

import pytest

from .retention import Kept, Question, content, means, scores, tokens, words

TURNS = {
    "D1:1": "I adopted a black cat named Oscar. He sleeps all day.",
    "D1:2": "Lovely! We went hiking in Norway.",
    "D1:3": "Nothing else happened.",
}


def score(answer: str, *evidence: str, summary: str) -> dict[str, float]:
    (one,) = scores([Question(answer, evidence)], Kept(TURNS, summary))
    return one


def test_words__marks_of_lists__count_too() -> None:
    assert words("## Goal\n- two words") == 5


def test_tokens__case_endings_articles__do_not_matter() -> None:
    assert tokens("The Hiking, and a hike") == tokens("hiked hikes")


def test_content__stop_words_only__taken_as_they_are() -> None:
    assert content("the black cat") == {"black", "cat"}
    assert content("It was they") == set(tokens("it was they"))


def test_scores__everything_kept__all_are_one() -> None:
    one = score("black cats", "D1:1", summary="\n".join(TURNS.values()))
    assert one == dict.fromkeys(("contain", "tokrec", "full", "evid", "evall", "local"), 1.0)


def test_contain__words_in_another_order__does_not_hold() -> None:
    one = score("black cat", "D1:1", summary="A cat, black as night.")
    assert (one["contain"], one["full"]) == (0, 1)


def test_tokrec__half_of_the_words_anywhere__half() -> None:
    one = score("Oscar, Norway", "D1:1", summary="We went hiking in Norway.")
    assert (one["tokrec"], one["full"]) == (0.5, 0)


def test_local__word_kept_from_another_turn__does_not_count() -> None:
    turns = {"a": "My cat is ill.", "b": "Your cat is fine, I think."}
    (one,) = scores([Question("cat", ("a",))], Kept(turns, "Your cat is fine, I think."))
    assert (one["tokrec"], one["local"]) == (1, 0)


def test_local__answer_not_in_the_evidence__does_not_count() -> None:
    assert "local" not in score("Paris", "D1:1", summary="Paris")
    assert "local" not in score("cat", "D9:9", summary="cat")


def test_local__only_what_the_evidence_holds_is_asked_for() -> None:
    one = score("Oscar in Norway", "D1:1", summary="- I adopted a black cat named Oscar.")
    assert (one["local"], one["tokrec"]) == (1, 0.5)


def test_evid__half_of_a_turn__is_kept() -> None:
    one = score("cat", "D1:1", "D1:2", summary="I adopted a black cat named Oscar.")
    assert (one["evid"], one["evall"]) == (0.5, 0)


@pytest.mark.parametrize(
    "line",
    [
        "- [2023-05-08] We went hiking in Norway.",
        "- [x] We went hiking in Norway. (#12)",
        "- Lovely! We went hiking in Norway. Nothing else happened.",
        "- We went hiking\u2026 hiking in Norway.",
    ],
)
def test_kept__what_the_form_adds__is_looked_through(line: str) -> None:
    assert {"hike", "norway"} <= Kept(TURNS, line).of_turn["D1:2"]


def test_kept__words_that_stand_nowhere_in_a_row__are_of_no_turn() -> None:
    assert not any(Kept(TURNS, "- Norway cat day hiking.").of_turn.values())


def test_means__absent_figures__are_left_out_of_their_mean() -> None:
    assert means([{"full": 1.0, "local": 0.5}, {"full": 0.0}]) == {"full": 0.5, "local": 0.5}
