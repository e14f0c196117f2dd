from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.sections import items, meaning, parse, render

from .build import HOSTILE, SECTIONS


@pytest.mark.parametrize(
    "line",
    [
        "## Overall Goal",
        "#  overall   GOAL",
        "### Overall Goal:",
        "#### 1. Overall Goal",
        "## **Overall Goal**",
        "**Overall Goal**",
        "**Overall Goal:**",
        "__Overall Goal__",
        "## Overall Goal ##",
        "1. **Overall Goal**",
        "##Overall Goal",
        "## Overall Goal\uff1a",
    ],
)
def test_parse__heading_written_otherwise__found(line: str) -> None:
    parsed = parse(f"{line}\nFix it.", ["Overall Goal"])
    assert parsed.sections == [{"heading": "Overall Goal", "text": "Fix it."}]
    assert parsed.missing == []


@pytest.mark.parametrize(
    "line",
    [
        "Overall Goal",
        "##### Overall Goal",
        "## Overall",
        "- Overall Goal",
        "The **Overall Goal** is",
        "## Overall Goals",
    ],
)
def test_parse__not_a_heading__missing(line: str) -> None:
    assert parse(f"{line}\nFix it.", ["Overall Goal"]).missing == ["Overall Goal"]


def test_parse__text_on_the_headings_line__kept() -> None:
    assert parse("**Overall Goal:** fix it", SECTIONS).sections[0]["text"] == "fix it"
    assert parse("## Overall Goal: fix: it", SECTIONS).sections[0]["text"] == "fix: it"


def test_parse__other_order_and_repeats__asked_order_and_merged() -> None:
    parsed = parse("hello\n## Active Files\na.py\n## Overall Goal\nx\n## Notes\nn\n## Active Files\nb.py", SECTIONS)
    assert [(s["heading"], s["text"]) for s in parsed.sections] == [
        ("Overall Goal", "x\n## Notes\nn"),
        ("Active Files", "a.py\nb.py"),
    ]
    assert parsed.missing == ["Next Steps"]
    assert parsed.preamble == "hello"


def test_parse__heading_in_a_closed_fence__no_heading() -> None:
    assert parse("## Overall Goal\n```\n## Next Steps\n```", SECTIONS).missing == ["Next Steps", "Active Files"]
    assert parse("## Overall Goal\n```\n## Next Steps\nopen", SECTIONS).missing == ["Active Files"]


def test_items__checklist__text_and_state() -> None:
    text = "- [ ] write\n* [x] read\n1. [X] think\n- [] empty\nplain\n- [link](x)"
    assert items(text) == [
        {"text": "write", "done": False},
        {"text": "read", "done": True},
        {"text": "think", "done": True},
        {"text": "empty", "done": False},
    ]


@given(
    st.dictionaries(
        st.sampled_from(SECTIONS), st.sampled_from(["", "- [ ] a\n- [x] b", "text\n\nmore", *HOSTILE[:3]]), min_size=3
    )
)
def test_render__parsed_again__the_same_sections(bodies: dict[str, str]) -> None:
    parsed = parse("\n".join(f"## {heading}\n{bodies[heading]}" for heading in SECTIONS), SECTIONS)
    assert parse(render(parsed.sections), SECTIONS) == parsed


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Overall Goal", "goal"),
        ("Task Overview", "goal"),
        ("Gesamtziel", "other"),
        ("Ziel", "goal"),
        ("总体目标", "goal"),
        ("全体の目標", "goal"),
        ("Next Steps", "steps"),
        ("Nächste Schritte", "steps"),
        ("下一步", "steps"),
        ("Pending Tasks", "steps"),
        ("Следующие шаги", "steps"),
        ("Active Files", "files"),
        ("Aktive Dateien", "files"),
        ("活动文件", "files"),
        ("User profile", "other"),
        ("Errors and fixes", "errors"),
        ("Key decisions", "other"),
        ("", "other"),
    ],
)
def test_meaning__headings_of_several_languages__told(heading: str, expected: str) -> None:
    assert meaning(heading) == expected
