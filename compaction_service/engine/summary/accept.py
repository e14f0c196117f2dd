"""Which answers of a model become a summary (semantics 7, Accept).

Peers stored empty answers, truncated ones, apologies, error pages and copies of their input as summaries, and lost the
history behind them. Here each has a reason code, and the caller falls back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .language import Expected, is_other
from .lexicon import BLANK, REFUSAL, SERVER_ERROR
from .sections import Parsed, Section, parse, render
from .span import Count
from .text import clean, words
from .transcript import MARKS

Reason = Literal[
    "empty",
    "truncated",
    "tool_call",
    "refusal",
    "echo",
    "wrong_language",
    "sections_missing",
    "not_smaller",
    "no_notes",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer. `finish_reason` is OpenAI's word for it, as litellm normalises it."""

    text: str | None
    finish_reason: str | None
    tool_calls: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    text: str
    sections: list[Section]
    tokens: int


@dataclass(frozen=True, slots=True)
class Rejected:
    reason: Reason


def accept(
    answer: Answer,
    *,
    sections: Sequence[str],
    source: Iterable[str],
    replaced_tokens: int,
    count: Count,
    rules: str = "",
    language: Expected | None = None,
    kept: Sequence[str] = (),
) -> Accepted | Rejected:
    """The summary in an answer, or why there is none.

    `source`: the texts the call was given that an honest answer does not copy at length (the transcript and the
    system message; not a previous summary, which an update rightly repeats). `rules`: what is in every system message,
    of which it copies nothing. `replaced_tokens`: tokens of what the summary would replace, by `count`.
    `language`: what it is to be in; None: not sure, so any. `kept`: what it was told to have word for word.
    """
    if early := unfinished(answer):
        return Rejected(early)
    text = unwrap(clean(answer.text or ""), sections)
    parsed = parse(text, sections)
    if fault := _fault(text, parsed, _without(text, kept), source, rules, language):
        return Rejected(fault)
    text = render(parsed.sections) if parsed.sections else text
    tokens = count(text)
    return Accepted(text, parsed.sections, tokens) if tokens < replaced_tokens else Rejected("not_smaller")


def unfinished(answer: Answer) -> Reason | None:
    """Why an answer is none, whatever it was to be."""
    if answer.tool_calls or answer.finish_reason in ("tool_calls", "function_call"):
        return "tool_call"
    if answer.finish_reason == "content_filter":
        return "refusal"
    return None if answer.finish_reason == "stop" else "truncated"


def _without(text: str, kept: Sequence[str]) -> str:
    """What is left when the sentences that it was to copy are taken out."""
    for sentence in kept:
        text = text.replace(sentence, "")
    return text


def _fault(
    text: str, parsed: Parsed, own: str, source: Iterable[str], rules: str, language: Expected | None
) -> Reason | None:
    if _is_blank(text) or (parsed.sections and all(_is_blank(section["text"]) for section in parsed.sections)):
        return "empty"
    if is_refusal(text):
        return "refusal"
    if is_echo(own, source, rules):
        return "echo"
    if language and is_other(own, language):
        return "wrong_language"
    return "sections_missing" if parsed.missing else None


_THINK = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_THINK_NEXT = re.compile(r"\s*<(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_THINK_END = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_FENCED = re.compile(r"```(?:markdown|md|text)?[ \t]*\n(.*)\n```", re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<(summary|answer|output)>(.*)</\1>", re.DOTALL | re.IGNORECASE)


def unwrap(text: str, sections: Sequence[str] = ()) -> str:
    """The answer without the thinking before it and without a fence or tag around all of it. Thinking that is never
    closed leaves nothing."""
    text = text.strip()
    start = 0
    while opened := _THINK_NEXT.match(text, start):
        closed = _THINK_END.search(text, opened.end())
        if not closed:
            return ""
        start = closed.end()
    # Some chat templates open the thinking in the prompt, so that only its end is in the answer.
    end = _THINK_END.search(text, start)
    if end and not _THINK.search(text, start, end.start()) and not parse(text[start : end.start()], sections).sections:
        start = end.end()
    text = text[start:].strip()
    for wrapper in (_FENCED, _TAGGED):
        if found := wrapper.fullmatch(text):
            text = found[found.lastindex or 1].strip()
    return text


def _is_blank(text: str) -> bool:
    return len(text) < 200 and " ".join(re.split(r"[\s#*_`.\-\u2013\u2014\[\]():!]+", text.casefold())).strip() in BLANK


_SHORT = 400  # characters without headings


def is_refusal(text: str) -> bool:
    """A refusal or an error instead of a summary: the text begins so, or it is short and a line of it does."""
    plain = text.replace("\u2019", "'")
    if REFUSAL.match(plain[:300]) or SERVER_ERROR.match(plain[:300]):
        return True
    lines = [line.strip(" \t-*>_") for line in plain.splitlines() if not line.lstrip().startswith(("#", "**"))]
    return sum(map(len, lines)) < _SHORT and any(REFUSAL.match(line) for line in lines)


_SHINGLE = 12  # words that in a row are copied, not said again
_LONG = 40  # words; a shorter answer may well be one quotation
_COPIED = 0.7
_RULES = 60  # words copied of the rules; no summary of anything has so many
_OPENED = re.compile(r"^<(?:transcript|previous_summary|summary|tail)>$", re.MULTILINE)


def is_echo(text: str, source: Iterable[str], rules: str = "") -> bool:
    """The text repeats what it was made from: our own markup, a piece of the rules it was given, or most of it in long
    runs of the source's words.

    Linear in text and source, memory in the text alone."""
    if len(MARKS.findall(text)) > 1 or len(_OPENED.findall(text)) > 1:
        return True
    own = words(text)
    if len(own) < _LONG:
        return False
    # Character pairs stand for about half a word each.
    size = _SHINGLE if sum(map(len, own)) > 3 * len(own) else 2 * _SHINGLE
    places: dict[int, list[int]] = {}
    for at in range(len(own) - size + 1):
        places.setdefault(hash(tuple(own[at : at + size])), []).append(at)
    copied = bytearray(len(own))
    for part in (rules, *source):
        theirs = words(part)
        for at in range(len(theirs) - size + 1):
            for place in places.pop(hash(tuple(theirs[at : at + size])), ()):
                copied[place : place + size] = b"\1" * size
        if part is rules and sum(copied) >= _RULES:
            return True
    return sum(copied) >= _COPIED * len(own)
