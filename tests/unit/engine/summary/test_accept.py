from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.accept import Accepted, Answer, Rejected, accept, is_echo, unwrap
from compaction_service.engine.summary.prompt import RULES, Wanted, merge, resummarize
from compaction_service.engine.summary.transcript import render

from .build import HOSTILE, SECTIONS, by_chars, dialogue

GOOD = (
    "## Overall Goal\nMend the login of src/auth.py.\n\n## Next Steps\n- [x] read it\n- [ ] mend it\n\n"
    "## Active Files\n- src/auth.py"
)
PROSE = (
    "The quick harbour master of Lisbon wrote eleven letters about tides and cranes before breakfast, and sent nine of "
    "them to the mayor, who answered none. In spring the port closed for repairs; the cranes were sold to a company in "
    "Rotterdam for four hundred thousand euros, and the letters were found by a student in 1987, who made them the "
    "subject of a thesis on maritime bureaucracy in the interwar years."
)


def judge(
    text: str | None,
    finish: str | None = "stop",
    *,
    tools: bool = False,
    source: str = "",
    sections: tuple[str, ...] = SECTIONS,
    replaced: int = 10_000,
) -> Accepted | Rejected:
    return accept(
        Answer(text, finish, tools), sections=sections, source=[source], replaced_tokens=replaced, count=by_chars
    )


def reason(judged: Accepted | Rejected) -> str:
    assert isinstance(judged, Rejected)
    return judged.reason


def test_accept__good_answer__text_sections_and_items() -> None:
    judged = judge(GOOD)
    assert isinstance(judged, Accepted)
    assert judged.text == GOOD
    assert judged.tokens == by_chars(GOOD)
    assert judged.sections[1] == {
        "heading": "Next Steps",
        "text": "- [x] read it\n- [ ] mend it",
        "items": [{"text": "read it", "done": True}, {"text": "mend it", "done": False}],
    }


@pytest.mark.parametrize(
    "wrapped",
    [
        "<think>\nlet me see\n</think>\n\n{}",
        "```markdown\n{}\n```",
        "Sure, here it is:\n\n{}",
        "reasoning first</think>{}",
        "<summary>\n{}\n</summary>",
    ],
)
def test_accept__thinking_fences_and_small_talk_around__stripped(wrapped: str) -> None:
    judged = judge(wrapped.replace("{}", GOOD))
    assert isinstance(judged, Accepted)
    assert judged.text == GOOD


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("length", "truncated"),
        (None, "truncated"),
        ("", "truncated"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_call"),
        ("function_call", "tool_call"),
    ],
)
def test_accept__not_finished_normally__rejected(finish: str | None, expected: str) -> None:
    assert reason(judge(GOOD, finish)) == expected


def test_accept__tool_call_beside_text__rejected() -> None:
    assert reason(judge(GOOD, tools=True)) == "tool_call"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "  \n\t",
        "\0",
        "NONE",
        "none.",
        "N/A",
        "**None**",
        "null",
        "なし",
        "<think>only thinking, never closed",
        "<think>closed</think>",
        "<think>a</think> <think>b",
        "## Overall Goal\n\n## Next Steps\n\n## Active Files",
        "## Overall Goal\nNone\n## Next Steps\nN/A\n## Active Files\n-",
        "```\n\n```",
    ],
)
def test_accept__nothing_said__empty(text: str | None) -> None:
    assert reason(judge(text)) == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, I cannot assist.",
        "I cannot summarize this conversation.",
        "As an AI language model, I do not summarise.",
        "There is no conversation provided.",
        "Please provide the transcript you want summarized.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Je suis désolé, je ne peux pas vous aider.",
        "Lo siento, no puedo ayudar con eso.",
        "抱歉，我无法提供帮助。",
        "申し訳ありませんが、お手伝いできません。",
        "Извините, я не могу помочь.",
        "죄송합니다.",
        "عذراً، لا أستطيع المساعدة",
        "Error: 500 Internal Server Error",
        '{"error": {"message": "overloaded"}}',
        "<html><body>502 Bad Gateway</body></html>",
        "Traceback (most recent call last):\n  File",
        "Rate limit exceeded, try again",
        "openai.APITimeoutError: Request timed out.",
        "## Overall Goal\nI'm sorry, but I can't assist with that.\n## Next Steps\n- none\n## Active Files\n- none",
        "I'm sorry, I can't do that.\n\n" + GOOD,
    ],
)
def test_accept__refusal_or_error_text__rejected(text: str) -> None:
    assert reason(judge(text)) == "refusal"


@pytest.mark.parametrize(
    "goal",
    [
        "The user was told: I'm sorry, I can't help with that.",
        "The user saw `Error: 500 Internal Server Error` when logging in.",
        'The assistant refused once ("I cannot assist"), then helped.',
        "Finding out why the page says 502 Bad Gateway.",
        "- The user can't eat nuts.",
    ],
)
def test_accept__summary_that_tells_of_refusals_and_errors__accepted(goal: str) -> None:
    assert isinstance(judge(GOOD.replace("Mend the login of src/auth.py.", goal)), Accepted)


def test_accept__section_missing__rejected() -> None:
    assert reason(judge(GOOD.replace("## Next Steps", "## Later"))) == "sections_missing"
    assert reason(judge("A fine prose summary without any headings.")) == "sections_missing"


def test_accept__no_sections_asked__any_text() -> None:
    judged = judge("A fine prose summary.", sections=())
    assert isinstance(judged, Accepted)
    assert judged.sections == []


def test_accept__not_smaller_than_what_it_replaces__rejected() -> None:
    assert reason(judge(GOOD, replaced=by_chars(GOOD))) == "not_smaller"
    assert isinstance(judge(GOOD, replaced=by_chars(GOOD) + 1), Accepted)


def test_accept__transcript_copied__echo() -> None:
    transcript = render(dialogue(PROSE, PROSE[::-1]))
    assert reason(judge(transcript, source=transcript)) == "echo"
    assert reason(judge(PROSE, source=transcript)) == "echo"
    assert (
        reason(judge(f"## Overall Goal\n{PROSE}\n## Next Steps\n- [ ] x\n## Active Files\n-", source=transcript))
        == "echo"
    )


def test_accept__our_rules_copied__echo() -> None:
    """A prompt that has no transcript (a merge, a shortening) comes back, with a good summary in it."""
    for asked in (resummarize(Wanted(SECTIONS, 300, 400), GOOD), merge(Wanted(SECTIONS, 300, 400), [GOOD, GOOD])):
        for text in (f"{asked.system}\n\n{asked.user}", asked.user.replace(GOOD, GOOD * 9), f"{RULES}\n{GOOD * 9}"):
            if text.count("<summary>") != 1:
                assert is_echo(text, [], RULES)


def test_accept__wording_that_instructions_ask_for__no_echo() -> None:
    told = "Begin with this: " + PROSE
    assert isinstance(
        accept(
            Answer(f"{GOOD}\n{PROSE}\n{'more of our own words, ' * 40}", "stop"), sections=SECTIONS, source=[told],
            replaced_tokens=9999, count=by_chars, rules=RULES,
        ), Accepted,
    )  # fmt: skip


def test_is_echo__chinese_copied__echo() -> None:
    text = "".join(chr(0x4E00 + (n * 7919) % 5000) for n in range(300))
    assert is_echo(text, [f"前文{text}后文"])
    assert not is_echo(text, [text[::-1]])


def test_is_echo__requests_and_paths_quoted_in_an_honest_summary__no_echo() -> None:
    request = (
        "Please make the login page of the customer portal remember the last tenant that was chosen, also in private "
        "windows."
    )
    summary = (
        f'The user asked: "{request}" The session cookie was moved to compaction_service/api/session.py and signed '
        "with the key of the tenant; two tests fail because the fixture still expects the old cookie name, which was "
        "renamed in the release of last March."
    )
    assert not is_echo(summary, [render(dialogue(request, "Done, see compaction_service/api/session.py"))])


def test_is_echo__large_source__linear_time() -> None:
    source = " ".join(f"w{n % 5000}" for n in range(300_000))
    start = time.process_time()
    assert is_echo(source[:20_000], [source])
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "unit", ["<think></think>", "</think>", "<think>", " ", "\n", "**", "#", "a ", "`", "<summary>"]
)
def test_accept__a_long_run_of_one_unit__linear_time(unit: str) -> None:
    start = time.process_time()
    judge(unit * (300_000 // len(unit)))
    assert time.process_time() - start < 2


@given(st.one_of(st.sampled_from(HOSTILE), st.text(st.characters())))
def test_accept__any_text__no_exception_and_clean_result(body: str) -> None:
    judged = judge(GOOD.replace("Mend the login", body))
    if isinstance(judged, Accepted):
        judged.text.encode()
        assert "\0" not in judged.text


def test_unwrap__think_tag_quoted_inside_the_summary__kept() -> None:
    text = "## Overall Goal\nThe model must close </think> itself."
    assert unwrap(text, SECTIONS) == text
