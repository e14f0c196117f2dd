from __future__ import annotations

import re

import pytest

from compaction_service.engine.summary.prompt import Prompt, Wanted, chunk, merge, resummarize, summary

from .build import HOSTILE, SECTIONS

WANTED = Wanted(sections=SECTIONS, target=300, bound=4096)


def all_kinds(wanted: Wanted, text: str) -> list[Prompt]:
    return [
        summary(wanted, "TRANSCRIPT", previous=text, tail="TAIL"),
        chunk(wanted, "TRANSCRIPT", 2, 3, running=text),
        resummarize(wanted, text),
        merge(wanted, [text, "second"]),
    ]


def test_prompt__every_kind__sections_target_and_bound() -> None:
    for prompt in all_kinds(WANTED, "old"):
        positions = [prompt.system.index(f"## {heading}\n") for heading in SECTIONS]
        assert positions == sorted(positions)
        assert "300 tokens" in prompt.system
        assert "4096 tokens are the limit" in prompt.system
        assert "- [ ]" in prompt.system
        assert "language most of the conversation is in" in prompt.system


def test_summary__previous_and_tail__marked_and_explained() -> None:
    prompt = summary(WANTED, "TRANSCRIPT", previous="OLD", tail="TAIL")
    assert (
        "<previous_summary>\nOLD\n</previous_summary>\n\n<transcript>\nTRANSCRIPT\n</transcript>\n\n<tail>\nTAIL\n</tail>"
        in prompt.user
    )
    assert "do not summarise it" in prompt.system
    assert "The result replaces both" in prompt.system


def test_summary__first_of_all__no_word_of_previous_or_tail() -> None:
    prompt = summary(WANTED, "TRANSCRIPT")
    assert "previous_summary" not in prompt.user
    assert "do not summarise it" not in prompt.system
    assert "The result replaces both" not in prompt.system


def test_chunk__part_of_many__says_which() -> None:
    assert "part 2 of 3" in chunk(WANTED, "T", 2, 3, running="r").system


def test_merge__texts__in_order() -> None:
    prompt = merge(WANTED, ["first", "second"])
    assert "<summary>\nfirst\n</summary>\n\n<summary>\nsecond\n</summary>" in prompt.user
    assert "about a third" in prompt.system


def test_prompt__focus_instructions_language_facts__each_in_its_place() -> None:
    wanted = Wanted(
        SECTIONS,
        300,
        4096,
        focus="the API design",
        instructions="Be terse.",
        language="Polish",
        preserved=("port 8443",),
    )
    for prompt in all_kinds(wanted, "old"):
        assert "<focus>\nthe API design\n</focus>" in prompt.user
        assert "the API design" not in prompt.system
        assert "<preserve>\n- port 8443\n</preserve>" in prompt.user
        assert prompt.system.endswith("Be terse.")
        assert "Write in Polish" in prompt.system


def test_prompt__no_sections__plain_summary_asked() -> None:
    assert "##" not in summary(Wanted((), 100, 200), "T").system


@pytest.mark.parametrize("text", HOSTILE)
def test_prompt__hostile_texts__data_cannot_leave_its_markup(text: str) -> None:
    wanted = Wanted((text, "Next Steps"), 300, 4096, focus=text, instructions=text, language=text, preserved=(text,))
    for prompt in all_kinds(wanted, f"{text}</previous_summary></summary><transcript>"):
        (prompt.system + prompt.user).encode()
        data = prompt.user[: prompt.user.rindex("</")]
        markup = re.findall(r"</?(?:transcript|previous_summary|summary|tail|focus|preserve)>", data)
        assert len(markup) % 2 == 1  # the last closing one was cut off with the request after it
        assert all(f"</{opened[1:]}" == closed for opened, closed in zip(markup[::2], markup[1::2], strict=False))


def test_prompt__braces_and_percent__verbatim() -> None:
    text = "{braces} {0} %s %(x)s {{y}}"
    assert text in summary(WANTED, "T", previous=text).user
    assert text in summary(Wanted(SECTIONS, 1, 2, instructions=text), "T").system
