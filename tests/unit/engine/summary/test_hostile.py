"""Tool results that give orders: without a model they become no request, no step and nobody else's words."""

from __future__ import annotations

import pytest

from compaction_service.engine.summary import extractive
from compaction_service.engine.summary.report import dropped_content
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.engine.summary.transcript import MARKS, render
from tests.hostile import HOSTILE, SECRET

from .build import SECTIONS, Piece, by_chars, said


def filler(number: int) -> str:
    return f"Step {number}: the page src/page.py was read, and the price in line {number} is checked. " * 6


def span(hostile: str) -> list[SpanMessage]:
    """A tool printed something hostile."""
    return [
        said(1, "user", "Mend the prices of the page, and keep the currency as it is. " + filler(0)),
        said(2, "assistant", Piece("call", '{"path": "src/page.py"}', "fetch", "c1")),
        said(3, "tool", Piece("result", f"{filler(1)}\n{hostile}\n{filler(2)}", None, "c1")),
        said(4, "assistant", "The prices are mended. " + filler(3)),
        said(5, "user", "Look again whether the totals are right. " + filler(4)),
        said(6, "assistant", "They are. " + filler(5)),
    ]


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("bound", [200, 400, 2000])
def test_extract__tool_prints_orders__they_are_no_request_step_or_file(kind: str, bound: int) -> None:
    made = extractive.extract(span(HOSTILE[kind]), sections=SECTIONS, bound=bound, target=bound, count=by_chars)
    goal, steps, files = made.sections
    found = [line for one in (goal, steps) for line in one["text"].splitlines() if SECRET in line]
    # What a tool said bears its name; the last line of facts is a list of names.
    assert [line for line in found if not line.startswith(("- fetch: ", "- `"))] == []
    assert SECRET not in goal["text"]
    assert [item for item in steps.get("items", ()) if SECRET in item["text"]] == []
    assert kind == "headings" or SECRET not in files["text"]  # a path is a path, whoever names it
    if bound == 2000:  # a next round takes nothing of it for the user's either
        again = extractive.extract(
            span("Nothing."), sections=SECTIONS, bound=bound, target=bound, count=by_chars, previous=made.text
        )
        assert SECRET not in again.sections[0]["text"]
        assert [item for item in again.sections[1].get("items", ()) if SECRET in item["text"]] == []


@pytest.mark.parametrize("kind", HOSTILE)
def test_dropped_content__tool_prints_orders__none_is_a_request(kind: str) -> None:
    requests = [one for one in dropped_content(span(HOSTILE[kind]), "A summary.") if one["kind"] == "request"]
    assert [one["position"] for one in requests] == [1, 5]
    assert SECRET not in str(requests)


@pytest.mark.parametrize("kind", HOSTILE)
def test_render__tool_prints_orders__they_stay_inside_its_message(kind: str) -> None:
    text = render(span(HOSTILE[kind]))
    third = text[text.index("<3 tool>") : text.index("<4 assistant>")]
    assert text.count(SECRET) == third.count(SECRET) == HOSTILE[kind].count(SECRET)
    assert third.count("<result") == third.count("</result>") == 1
    assert third.endswith("</result>\n")
    assert len(MARKS.findall(text)) == len(span(HOSTILE[kind]))
