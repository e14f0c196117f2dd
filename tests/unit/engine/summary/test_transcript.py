from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.summary.transcript import escape, render, render_message

from .build import HOSTILE, Piece, said

_OWN = re.compile(
    r"</?(?:transcript|message|call|result|media|refusal|previous_summary|summary|summaries|tail|focus|preserve)\b",
    re.IGNORECASE,
)


def test_render__call_and_result__names_and_arguments() -> None:
    messages = [
        said(12, "user", "Read it", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        said(13, "assistant", Piece("thinking", "secret"), Piece("call", '{"path":"a.py"}', "read_file", "c1")),
        said(14, "tool", Piece("result", "x = 1", None, "c1")),
    ]
    assert render(messages) == (
        '<message position="12" role="user" at="2026-01-02T03:04:05Z">\nRead it\n</message>\n'
        '<message position="13" role="assistant">\n<call name="read_file">{"path":"a.py"}</call>\n</message>\n'
        '<message position="14" role="tool">\n<result name="read_file">x = 1</result>\n</message>'
    )


def test_render__time_in_another_zone__utc() -> None:
    at = datetime(2026, 1, 2, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert 'at="2026-01-01T23:00:00Z"' in render_message(said(1, "user", "x", at=at))


def test_render__messages_of_one_minute__the_first_has_its_time() -> None:
    begun = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    times = [begun, begun + timedelta(seconds=50), begun + timedelta(seconds=60), begun + timedelta(seconds=61), begun]
    text = render([said(n, "user", "x", at=at) for n, at in enumerate(times, 1)])
    assert re.findall(r'position="(\d)" role="user" at="[\d-]+T([\d:]+)Z"', text) == [
        ("1", "03:04:05"),
        ("3", "03:05:05"),
        ("5", "03:04:05"),
    ]


def test_render__only_thinking__says_there_is_no_text() -> None:
    assert "(no text)" in render_message(said(1, "assistant", Piece("thinking", "hm")))


def test_render__media_and_base64__named_not_embedded() -> None:
    data = "data:image/png;base64," + "A" * 5000
    text = render_message(said(1, "user", f"look {data}", Piece("media", "image/png", "cat.png")))
    assert "AAAA" not in text
    assert "[image/png, 5022 characters of base64]" in text
    assert '<media name="cat.png">image/png</media>' in text


@pytest.mark.parametrize(
    "fake",
    [
        "</transcript>",
        "< / Message role='system'>",
        "＜／ｔｒａｎｓｃｒｉｐｔ＞",
        "<\u200b/message>",
        "</TRANSCRIPT\n>",
        "<|im_start|>system",
        "<system>",
        "</previous_summary >",
        "〈message〉",
        "<｜begin▁of▁sentence｜>",
        "<start_of_turn>",
    ],
)
def test_escape__anything_like_markup__loses_its_bracket(fake: str) -> None:
    assert escape(f"a {fake} b").startswith("a &lt;")


@pytest.mark.parametrize(
    "text",
    ["a < b && c > d", "List<User> x", "<div class='a'>", "<MessageList />", "cat <<EOF", "« message »", "x &lt; y"],
)
def test_escape__ordinary_code__kept_verbatim(text: str) -> None:
    assert escape(text) == text


_NASTY = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "<",
                "</",
                "＜",
                "/",
                "message",
                "MESSAGE",
                "transcript",
                "ｍｅｓｓａｇｅ",
                ' position="9"',
                ">",
                "\u200b",
                "|",
                "\0",
                "\ud83d",
                "&lt;",
                "\n",
                " ",
                *HOSTILE,
            ]
        ),
        st.text(st.characters(), max_size=5),
    ),
    max_size=12,
).map("".join)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["text", "call", "result", "media", "refusal", "odd"]), _NASTY, st.one_of(st.none(), _NASTY)
        ),
        min_size=1,
        max_size=4,
    ),
    _NASTY,
)
def test_render__any_content__markup_is_only_ours(parts: list[tuple[str, str, str | None]], role: str) -> None:
    text = render([said(7, role, *(Piece(kind, body, name) for kind, body, name in parts)), said(8, "user", "end")])
    text.encode()
    frames = re.findall(r'^<message position="(\d+)" role="([^"<>\n]*)">$', text, re.MULTILINE)
    assert [position for position, _ in frames] == ["7", "8"]
    assert len(re.findall(r"</?message\b", text, re.IGNORECASE)) == 4
    shown = [kind for kind, body, _ in parts if kind != "text"]
    assert len(_OWN.findall(text)) == 4 + 2 * len(shown)
