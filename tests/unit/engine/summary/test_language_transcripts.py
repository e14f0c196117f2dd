"""No summary of a real conversation is refused for its language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction_service.engine.formats import openai
from compaction_service.engine.summary import extractive, prompt
from compaction_service.engine.summary.language import expected, is_other
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.engine.summary.transcript import render
from tests.model_server import honest
from tests.transcripts import sources, transcript

from .build import SECTIONS, by_chars

MOST = 60  # messages of a source
SPAN = 30
NOT_ENGLISH = {"crosswoz_zh": "zh", "real_persona_chat_ja": "ja"}


def spans(name: str) -> Iterator[list[SpanMessage]]:
    messages = [one for one in transcript(name, MOST).messages if one["role"] != "system"]
    read = [
        SpanMessage(number, facts.role, None, openai.parts(one), number, request=facts.request)
        for number, one in enumerate(messages, 1)
        for facts in [openai.read(one, "message")]
    ]
    return (read[start : start + SPAN] for start in range(0, len(read), SPAN))


def written(span: list[SpanMessage], language: str) -> str:
    """What a model that does as it is told makes of it."""
    asked = prompt.summary(prompt.Wanted(SECTIONS, 300, 900), render(span))
    ask = honest.read({"messages": [{"content": asked.system}, {"content": asked.user}]})
    return honest.write(ask, 300, language=language)


@pytest.mark.parametrize("name", sources())
def test_is_other__real_conversation__its_own_language_is_taken(name: str) -> None:
    for span in spans(name):
        wanted = expected(None, span)
        if wanted is None:
            continue
        made = extractive.extract(span, sections=SECTIONS, bound=1500, target=400, count=by_chars)
        assert not is_other(made.text, wanted)
        if wanted.language.code == "en":
            assert not is_other(written(span, "english"), wanted)


@pytest.mark.parametrize("name", NOT_ENGLISH)
def test_is_other__real_conversation_answered_in_english__refused(name: str) -> None:
    for span in spans(name):
        wanted = expected(None, span)
        assert wanted
        assert wanted.language.code == NOT_ENGLISH[name]
        assert is_other(written(span, "english"), wanted)
