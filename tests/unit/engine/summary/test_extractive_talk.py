"""Extractive summaries of talk: what leads, how days are shown, any language, and the cost of making one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compaction_service.engine.summary.extractive import extract
from compaction_service.engine.summary.span import SpanMessage

from .build import SECTIONS, Piece, by_words, dialogue, said

DAY = datetime(2026, 3, 1, 9, tzinfo=UTC)


def make(messages: list[SpanMessage], room: int, previous: str | None = None) -> str:
    return extract(messages, sections=SECTIONS, bound=room, target=room, count=by_words, previous=previous).text


def chat(*days: tuple[str, ...]) -> list[SpanMessage]:
    texts = [(text, DAY + timedelta(days=number)) for number, day in enumerate(days) for text in day]
    return [said(n, "user" if n % 2 else "assistant", text, at=at) for n, (text, at) in enumerate(texts, 1)]


def test_extract__greetings_and_thanks__do_not_lead() -> None:
    made = make(
        dialogue(
            "Hi there! My sister Nadia opened a bakery in Lyon. Thanks!",
            "Wow, that's great! I would like to visit Lyon in May.",
            "You're so kind! We bake rye bread and sell honey.",
            "Sounds lovely. My brother keeps bees in Nantes.",
        ),
        40,
    )
    goal = made.split("## Next Steps")[0]
    assert "- My sister Nadia opened a bakery in Lyon." in goal
    assert "Hi there" not in goal


def test_extract__thanks_last__is_no_open_step() -> None:
    made = make(dialogue("Mend src/a.py, please.", "I mended it.", "Thanks a lot!"), 60)
    assert "## Overall Goal\n- Mend src/a.py, please.\n" in made
    assert "- [" not in made


def test_extract__answer_to_a_question__before_what_nobody_asked() -> None:
    made = make(
        dialogue(
            "Where does your cousin live now?",
            "Martha settled around Bergen with relatives.",
            "Walter travelled beyond Turin with colleagues.",
            "Right.",
            "Ok.",
            "Ok.",
            "Ok.",
        ),
        24,
    )
    assert "Bergen" in made
    assert "Turin" not in made


def test_extract__talk_of_several_days__one_paragraph_a_day_with_its_date() -> None:
    made = make(
        chat(
            ("I planted three pear trees.", "I bought a green canoe."),
            ("My canoe sank near Visby.", "The pear trees got leaves."),
            ("Fine.", "Ok.", "Ok.", "Ok."),
        ),
        70,
    )
    assert "- [2026-03-01] I planted three pear trees." in made
    assert "- [2026-03-02] My canoe sank near Visby." in made


def test_extract__second_round__sentences_keep_their_days() -> None:
    first = make(
        chat(("I planted three pear trees.", "Ok."), ("My canoe sank near Visby.", "Ok."), ("Fine.", "Ok.") * 3),
        60,
    )
    later = [said(n, "user" if n % 2 else "assistant", f"Nothing new in round {n}.", at=DAY) for n in range(20, 24)]
    second = make(later, 120, first)
    assert "[2026-03-01] I planted three pear trees." in second
    assert "[2026-03-02] My canoe sank near Visby." in second


def test_extract__one_day__no_dates_but_where_words_need_them() -> None:
    made = make(chat(("I planted three pear trees.", "I bought a green canoe yesterday.", "Ok.", "Ok.", "Ok.")), 60)
    assert "- I planted three pear trees." in made
    assert "[2026-03-01] I bought a green canoe yesterday." in made


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (
            (
                "你好！",
                "我的预订号是 HX-2931，入住上海虹桥的酒店。",
                "谢谢！",
                "房费是四百八十元，不含早餐。",
            ),
            ("HX-2931", "四百八十元"),
        ),
        (
            (
                "こんにちは！",
                "予約番号はKB-771で、京都駅の北口に泊まります。",
                "ありがとう。",
                "朝食は七時半からです。",
            ),
            ("KB-771", "七時半"),
        ),
        (
            (
                "مرحبا!",
                "رقم الحجز هو DX-5512 في فندق النخيل بدبي.",
                "شكرا!",
                "السعر 740 درهما مع الفطور.",
            ),
            ("DX-5512", "740"),
        ),
        (
            (
                "สวัสดีครับ",
                "หมายเลขการจองคือ TH-8824 ที่โรงแรมริมน้ำเชียงใหม่",
                "ขอบคุณ",
                "ราคาห้องคืนละ 1250 บาท",
            ),
            ("TH-8824", "1250"),
        ),
        (
            (
                "नमस्ते!",
                "मेरी बुकिंग संख्या IN-4417 है, जयपुर के होटल में।",
                "धन्यवाद!",
                "किराया 3200 रुपये है।",
            ),
            ("IN-4417", "3200"),
        ),
        (
            (
                "안녕하세요!",
                "예약 번호는 KR-3305이고 부산역 앞 호텔입니다.",
                "감사합니다!",
                "요금은 86000원입니다.",
            ),
            ("KR-3305", "86000"),
        ),
    ],
)
def test_extract__any_script__facts_are_kept_whole(texts: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    padding = [f"{texts[0]} {n}" for n in range(3)]
    messages = dialogue(*texts, *padding)
    made = extract(messages, sections=SECTIONS, bound=170, target=170, count=len).text
    assert all(name in made for name in wanted), made
    assert any(text in made for text in texts[1::2])


def test_extract__logs_and_code__the_error_and_the_names_stay() -> None:
    log = [f"2026-03-01 09:{n % 60:02d}:00 INFO worker-{n % 4} heartbeat ok" for n in range(300)]
    log[211] = "2026-03-01 09:31:07 ERROR worker-3 PaymentTimeoutError: gateway eu-7 gave no answer in 30 s"
    code = "\n".join(f"def helper_{n}(value):\n    return value + {n}" for n in range(100))
    messages = [
        said(1, "user", "Why do payments hang? Look at logs/pay.log and src/gateway.py, and change nothing."),
        said(2, "assistant", Piece("call", '{"path": "logs/pay.log"}', "read", "c1"), exchange=1),
        said(3, "tool", Piece("result", "\n".join(log), None, "c1"), exchange=1),
        said(4, "assistant", Piece("call", '{"path": "src/gateway.py"}', "read", "c2"), exchange=2),
        said(5, "tool", Piece("result", code, None, "c2"), exchange=2),
    ]
    made = make(messages, 120)
    for name in ("change nothing", "logs/pay.log", "src/gateway.py", "PaymentTimeoutError: gateway eu-7"):
        assert name in made


def test_extract__made_twice__is_the_same() -> None:
    messages = chat(*[tuple(f"Day {d} line {n}: bought {n * d} figs in town {n}." for n in range(9)) for d in range(5)])
    assert make(messages, 80) == make(messages, 80)


@contextmanager
def calls_counted() -> Iterator[list[int]]:
    """Calls of functions, Python's own included, made inside."""
    made = [0]

    def count(_frame: Any, event: str, _arg: Any) -> None:
        made[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield made
    finally:
        sys.setprofile(before)


def varied(size: int) -> list[SpanMessage]:
    """Talk, calls and results, of words that recur and words that do not."""
    messages: list[SpanMessage] = []
    for n in range(0, size, 4):
        messages += [
            said(n + 1, "user", f"Please mend src/part_{n}.py, it shows E{n % 97}. It was fine on day {n % 31}."),
            said(n + 2, "assistant", Piece("call", f'{{"path": "src/part_{n}.py"}}', "read", f"c{n}"), exchange=n + 2),
            said(n + 3, "tool", Piece("result", f"x_{n} = {n}\nValueError: odd {n}", None, f"c{n}"), exchange=n + 2),
            said(n + 4, "assistant", f"I changed the {n % 13}th rule in it, since part {n} had lost its key."),
        ]
    return messages


def test_extract__eight_times_the_text__about_eight_times_the_work() -> None:
    work = []
    for size in (800, 6400):
        messages = varied(size)
        with calls_counted() as made:
            make(messages, size)
        work.append(made[0])
    assert work[1] < 10 * work[0]
