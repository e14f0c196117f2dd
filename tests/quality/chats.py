"""Chats with an assistant that says far more than its user: is what the user said once still there?

Public chats of this shape with questions and evidence are too large to keep beside the tests, so the questions are made
here: twenty odd values, each said in a sentence of the user among the turns of real chats (`facts.PLANTED`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compaction_service.engine.summary.extractive import extract

from .facts import PLANTED, SECTIONS
from .retention import Kept, Question, means, scores, words
from .spans import span, texts

SOURCES = ("mtbench101", "tau_bench")
RATIO = 8
_CHATS = 5  # of each source


def chats(messages: Sequence[Any]) -> Iterable[list[Any]]:
    """The messages in equal parts, the sentences with the values spread over each."""
    size = len(messages) // _CHATS
    for number in range(_CHATS):
        part = list(messages[number * size : (number + 1) * size])
        free = [at for at, one in enumerate(part) if one["role"] == "user"]
        step = max(1, len(free) // len(PLANTED))
        for at, sentence in reversed(list(zip(free[::step], PLANTED.values(), strict=False))):
            part.insert(at, {"role": "user", "content": sentence})
        yield part


def figures(found: Iterable[Sequence[Any]]) -> dict[str, float]:
    rows: list[dict[str, float]] = []
    for chat in found:
        messages = span("openai", chat)
        room = sum(map(words, texts(messages))) // RATIO
        made = extract(messages, sections=SECTIONS, bound=room, target=room, count=words).text
        turns = {str(one.position): " ".join(one.texts("text")) for one in messages}
        ids = {text: name for name, text in turns.items()}
        questions = [Question(value, (ids[sentence],)) for value, sentence in PLANTED.items() if sentence in ids]
        rows += scores(questions, Kept(turns, made))
    return means(rows)
