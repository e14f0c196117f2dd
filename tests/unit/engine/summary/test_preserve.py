"""What a summariser is shown to keep word for word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.preserve import facts
from compaction_service.engine.summary.span import SpanMessage

from .build import by_chars, said


def user(text: str) -> SpanMessage:
    return said(1, "user", text)


EARLY = (
    "## Overall Goal\nThe port is 48213.\n- The key file is /etc/kestrel.key.\n## Next Steps\n- [ ] Restart node7.\n"
)


def test_facts__requests_with_names_and_numbers__are_kept_word_for_word_in_order() -> None:
    asked = [user("Hello there! The invoice is INV-99231. Thanks a lot."), user("Never touch src/ledger.py, please.")]
    assert facts("", asked, 500, by_chars) == ("The invoice is INV-99231.", "Never touch src/ledger.py, please.")


def test_facts__what_the_agent_said__is_not_among_them() -> None:
    assert facts("", [said(1, "assistant", "The invoice is INV-99231.")], 500, by_chars) == ()


def test_facts__summary_before__is_carried_without_headings_and_checklists() -> None:
    assert facts(EARLY, [], 500, by_chars) == ("The port is 48213.", "The key file is /etc/kestrel.key.")


def test_facts__said_before_already__is_not_kept_twice() -> None:
    assert facts(EARLY, [user("As I said, port 48213.")], 500, by_chars) == (
        "The port is 48213.",
        "The key file is /etc/kestrel.key.",
    )


def test_facts__little_room__the_summary_before_leaves_some_to_what_is_new() -> None:
    early = "\n".join(f"The code of door {n} is {n * 7919}." for n in range(100))
    kept = facts(early, [user("The invoice is INV-99231.")], 200, by_chars)
    assert kept[0] == "The code of door 0 is 0."
    assert kept[-1] == "The invoice is INV-99231."


def test_facts__pasted_lines_as_long_as_texts__are_left_out() -> None:
    assert facts("", [user("id=4711 " * 60)], 5000, by_chars) == ()


@given(st.lists(st.text(max_size=300), max_size=6), st.text(max_size=500), st.integers(0, 400))
def test_facts__any_text__fits_and_is_said_again_the_same(texts: list[str], previous: str, room: int) -> None:
    messages = [user(text) for text in texts]
    kept = facts(previous, messages, room, by_chars)
    assert sum(by_chars(one) for one in kept) <= room
    assert kept == facts(previous, messages, room, by_chars)
