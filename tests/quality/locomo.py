"""LoCoMo: chats of two people over months, with questions, answers and the turns that hold the evidence."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compaction_service.engine.summary.extractive import extract
from compaction_service.engine.summary.span import SpanMessage

from .retention import Kept, Question, means, scores, words
from .spans import Piece

RATIO = 8
SECTIONS = ("Overall Goal", "Next Steps", "Active Files")
TUNED_ON = 5  # conversations, the first ones; figures are told of the others
_ADVERSARIAL = 5  # this category asks for what was never said
_TURN_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Talk:
    messages: tuple[SpanMessage, ...]
    turns: dict[str, str]  # by evidence id
    questions: tuple[Question, ...]
    words: int


def talks(path: Path, *, timed: bool = True) -> list[Talk]:
    """The conversations; a shared picture is known by its caption. `timed`: messages have their sessions' times."""
    return [_talk(one, timed=timed) for one in json.loads(path.read_text(encoding="utf-8"))]


def _talk(one: dict[str, Any], *, timed: bool) -> Talk:
    said = one["conversation"]
    names = sorted((key for key in said if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))
    messages: list[SpanMessage] = []
    turns: dict[str, str] = {}
    for name in names:
        at = datetime.strptime(said[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in said[name]:
            user = turn["speaker"] == said["speaker_a"]
            caption = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns[turn["dia_id"]] = turn["text"] + caption
            position = len(messages) + 1
            part = Piece("text", turns[turn["dia_id"]])
            role = "user" if user else "assistant"
            messages.append(
                SpanMessage(position, role, at if timed else None, (part,), exchange=position, request=user)
            )
    questions = tuple(
        Question(str(asked["answer"]), tuple(_TURN_ID.findall(" ".join(asked["evidence"]))), asked["category"])
        for asked in one["qa"]
        if asked["category"] != _ADVERSARIAL
    )
    return Talk(tuple(messages), turns, questions, sum(map(words, turns.values())))


def summary(talk: Talk, ratio: float = RATIO) -> str:
    room = int(talk.words / ratio)
    return extract(talk.messages, sections=SECTIONS, bound=room, target=room, count=words).text


def _seconds(talk: Talk, ratio: float) -> float:
    """Of processor, the least of three: other work on the machine only adds."""
    took = []
    for _ in range(3):
        start = time.process_time()
        summary(talk, ratio)
        took.append(time.process_time() - start)
    return min(took)


def figures(found: Sequence[Talk], ratio: float = RATIO) -> dict[str, float]:
    """The means over all questions, the words kept of the room, and `seconds` of processor per 15,000 words."""
    rows: list[dict[str, float]] = []
    spent = used = 0.0
    for talk in found:
        spent += _seconds(talk, ratio)
        text = summary(talk, ratio)
        used += words(text) / (talk.words / ratio)
        rows += scores(talk.questions, Kept(talk.turns, text))
    size = sum(talk.words for talk in found)
    return means(rows) | {"room_used": used / len(found), "seconds": spent * 15_000 / size}
