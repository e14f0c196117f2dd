from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.bound import clip, cut, next_step
from compaction_service.engine.summary.span import Count

from .build import HOSTILE, by_chars, by_words

LONG = (
    "## Overall Goal\n"
    + "This is sentence one about goals. And a second one follows here. " * 20
    + "\n\n## Next Steps\n"
    + "\n".join(f"- [{'x' if n % 2 else ' '}] item {n}" for n in range(10, 40))
    + "\n\n## Active Files\n- a.py\n- b.py"
)


@pytest.mark.parametrize(
    ("before", "after", "done", "expected"),
    [
        (None, 4096, 0, "fits"),
        (None, 5000, 0, "again"),
        (6000, 5000, 1, "again"),
        (6000, 5401, 1, "cut"),
        (6000, 5400, 1, "again"),
        (6000, 7000, 1, "cut"),
        (9000, 5000, 4, "cut"),
        (9000, 4000, 4, "fits"),
        (None, 5000, 4, "cut"),
    ],
)
def test_next_step__passes_and_gains__as_semantics_7(before: int | None, after: int, done: int, expected: str) -> None:
    assert next_step(before, after, 4096, done, 4) == expected


def test_cut__within_bound__unchanged() -> None:
    assert cut(LONG, 10_000, by_chars) == LONG


def test_cut__over_the_bound__whole_sentences_under_their_headings() -> None:
    text = cut(LONG, 120, by_chars)
    assert by_chars(text) <= 120
    assert text.index("## Overall Goal") < text.index("## Next Steps") < text.index("## Active Files")
    assert text.split("\n\n")[0].endswith(("goals.", "here."))
    assert text.endswith("- a.py\n- b.py")


def test_cut__checklist__open_items_before_done_ones_newest_done_first() -> None:
    text = cut(LONG[LONG.index("## Next") : LONG.index("\n\n## Active")], 90, by_chars)
    kept = [line for line in text.splitlines() if line.startswith("- ")]
    assert all(f"- [ ] item {n}" in kept for n in range(10, 40, 2))
    done = [line for line in kept if "[x]" in line]
    assert done == [f"- [x] item {n}" for n in range(41 - 2 * len(done), 41, 2)]


def test_cut__bullet_of_several_sentences__what_stays_of_it_has_its_dash() -> None:
    dull = "It was as it had been and as it would be and there was a lot of it as ever. " * 3
    text = "## Facts\nA beginning.\n" + "\n".join(f"  - {dull}Port {n}80{n} belongs to HOST_{n}." for n in range(1, 6))
    made = cut(text, 70, by_chars)
    assert made.splitlines()[:2] == ["## Facts", "A beginning."]
    rest = made.splitlines()[2:]
    assert len(rest) >= 3
    assert all(line.startswith("  - Port ") for line in rest)


def test_cut__sentences__those_with_exact_values_stay_wherever_they_are() -> None:
    idle = [f"Some more was said about the {word} and how it goes along." for word in ("sea", "sky", "sun", "rain")]
    text = "## Goal\nMove the shop.\n" + " ".join([*idle, "Never exceed 4711 euros for INV-2291.", *idle[::-1]])
    made = cut(text, 30, by_chars)
    assert made.startswith("## Goal\nMove the shop.\n")
    assert "Never exceed 4711 euros for INV-2291." in made


def test_cut__line_of_names__cut_between_names() -> None:
    names = ", ".join(f"name_{n}" for n in range(100))
    made = cut(f"## Facts\n- Also named: `{names}`", 60, by_chars)
    assert all(line.startswith("- Also named: `name_") and line.endswith("`") for line in made.splitlines()[1:])
    assert len(made.splitlines()) > 1


def test_cut__room_for_few_headings__first_sections_stay() -> None:
    assert cut(LONG, 16, by_chars).startswith("## Overall Goal\nThis is")


def test_cut__one_endless_word__its_beginning() -> None:
    text = cut("x" * 1_000_000, 64, by_chars, "[compressed] ")
    assert text.startswith("[compressed] xxx")
    assert 32 < by_chars(text) <= 64


def test_clip__grapheme_at_the_cut__not_broken() -> None:
    assert clip("e\u0301" * 10, 5, len) == "e\u0301" * 2


_TEXT = st.one_of(
    st.sampled_from([LONG, *HOSTILE]),
    st.text(st.characters()),
    st.lists(
        st.sampled_from(
            [
                "## A",
                "# B c",
                "- [ ] open",
                "- [x] done",
                "A sentence. Another one!",
                "x" * 700,
                "好。" * 300,
                "",
                "#",
                "```",
            ]
        ),
        max_size=20,
    ).map("\n".join),
)


@given(_TEXT, st.integers(0, 300), st.sampled_from([by_chars, by_words, len]), st.sampled_from(["", "[compressed] "]))
def test_cut__any_text__within_bound_and_stable(text: str, bound: int, count: Count, prefix: str) -> None:
    result = cut(text, bound, count, prefix)
    result.encode()
    assert count(result) <= bound
    assert cut(text, bound, count, prefix) == result
