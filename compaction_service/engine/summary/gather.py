"""The sentences an extractive summary may keep: those of the previous summary, and those of the span."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

from .checklist import Checklist
from .files import call_values
from .lexicon import ERROR, PLAIN, QUESTION_ENDS
from .names import is_name_line
from .sections import Parsed, item, meaning
from .select import Traits, is_relative, only_acknowledges, only_greets, traits
from .span import Part, SpanMessage
from .text import sentences, words

_CALL_CHARS = 300  # a longer call writes a file
_MAX_BOOST = 4.0
_WEIGHTS = {"call": 1.0, "result": 0.5}
_ERROR_WEIGHT = 3.0
_ANSWER_WEIGHT = 2.0  # of what answers a question
_SUBJECT, _BESIDE = 4.0, 1.5  # of what is about the focus, and of what else its message says
_ASKED = 10  # sentences at a request's beginning; what follows was pasted
_PASTED_WEIGHT = 0.7
_BULLET = re.compile(r"^\s{0,8}(?:[-*+•>]|#{1,6}|\d{1,3}[.)])\s+")
_LABEL = re.compile(r"[a-z][a-z0-9_.-]{0,60}: ")
_PEOPLE = frozenset(("user: ", "assistant: ", "system: ", "developer: "))
_WENT_ON = re.compile(r"(?<=\u2026)\s+")  # as `bullets` joins what has no full stop
_DAY = re.compile(r"\[\d{4}-\d\d-\d\d\] ")


@dataclass(frozen=True, slots=True)
class Layout:
    """Which section (by index) takes what."""

    goal: int
    steps: int | None
    files: int | None
    errors: int | None
    facts: tuple[int, ...]

    @property
    def mixed(self) -> bool:
        """Users' words and the rest share a section, so that each must be labelled."""
        return self.goal in self.facts


def layout_of(headings: Sequence[str]) -> Layout:
    meanings = [meaning(heading) for heading in headings]

    def first(name: str) -> int | None:
        return meanings.index(name) if name in meanings else None

    steps, files, errors = first("steps"), first("files"), first("errors")
    goal = first("goal")
    if goal is None:
        goal = next((n for n, name in enumerate(meanings) if name not in ("steps", "files", "errors")), 0)
    facts = tuple(n for n, name in enumerate(meanings) if n != goal and name in ("other", "goal"))
    return Layout(goal, steps, files, errors, facts or ((goal,) if steps is None else (steps,)))


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    traits: Traits
    line: int  # sentences of one line are shown together
    weight: float
    section: int | None = None  # None: a fact, wherever facts go
    label: str = ""
    talk: bool = False  # of people who say as much as each other: shown in paragraphs
    asked: bool = False  # a user's request says it
    tool: bool = False  # a tool printed it, or was called with it


def old_sentences(
    old: Parsed, headings: Sequence[str], layout: Layout, messages: Sequence[SpanMessage], left: Checklist
) -> Iterator[Sentence]:
    """What the previous summary says, under its headings, and the items of its checklist that this one's has not;
    files are carried on their own.

    It weighs as when it was new: users' words, which the section about the goal has, more than what tools printed."""
    boost = request_weight(messages)
    tools = {f"{part.name}: " for message in messages for part in message.parts if part.kind == "call" and part.name}
    number, first = 0, 2.0
    for heading, text in [("", old.preamble), *((one["heading"], one["text"]) for one in old.sections)]:
        place = headings.index(heading) if heading in headings else layout.facts[0]
        if place == layout.files:
            continue
        for line in text.splitlines():
            number -= 1
            if (layout.steps is not None and item(line)) or is_name_line(line):
                continue
            day, label, said = _opened(line, tools, labelled=layout.mixed or place != layout.goal)
            tool = label not in ("", *_PEOPLE)
            asked = label == "user: " if layout.mixed else place == layout.goal and not tool
            weight = _WEIGHTS["result"] if tool else boost * first if asked else 1.0
            first = 1.0 if asked else first
            for sentence in chain.from_iterable(map(sentences, _WENT_ON.split(said))):
                worth = weight * (_ERROR_WEIGHT if ERROR.search(label + sentence) else 1)
                talk = bool(day) and not label
                yield Sentence(sentence, traits(sentence), number, worth, place, day + label, talk, asked, tool)
    label = "user: " if layout.mixed else ""
    for asked, text in [*((True, text) for text in left.requests), *((False, text) for text in left.others)]:
        number -= 1
        place, weight = (layout.goal, boost) if asked else (layout.facts[0], 1.0)
        for sentence in sentences(text):
            yield Sentence(sentence, traits(sentence), number, weight, place, label if asked else "", asked=asked)


def unmarked(line: str) -> str:
    """A line of a summary without its bullet and day."""
    return _DAY.sub("", _BULLET.sub("", line, count=1), count=1)


def is_printed(line: str) -> bool:
    """Whether a line of a summary quotes a tool."""
    label = _LABEL.match(unmarked(line))
    return label is not None and label[0] not in _PEOPLE


def _opened(line: str, tools: Collection[str], *, labelled: bool) -> tuple[str, str, str]:
    """A line of a summary as (day, label, what is said). `labelled`: what looks like a tool's name is one."""
    said = _BULLET.sub("", line, count=1)
    day = found[0] if (found := _DAY.match(said)) else ""
    said = said.removeprefix(day)
    label = said[: said.find(": ") + 2]
    if label not in tools and not (labelled and _LABEL.fullmatch(label)):
        label = ""
    return day, label, said.removeprefix(label)


def new_sentences(messages: Sequence[SpanMessage], layout: Layout) -> Iterator[Sentence]:
    boost = request_weight(messages)
    days = len({message.at.date() for message in messages if message.at})
    first = next((m.position for m in messages if m.request), None)
    asked = False  # the message before asks something
    for message in messages:
        answer = _ANSWER_WEIGHT if asked else 1.0
        asked = _asks(message)
        day = message.at.strftime("[%Y-%m-%d] ") if message.at else ""
        for part in message.parts:
            weight, place, label = answer, None, ""
            if part.kind in _WEIGHTS:
                weight, label = _WEIGHTS[part.kind], f"{part.name or 'tool'}: "
            else:
                if message.request:
                    weight, place = weight * boost * (2 if message.position == first else 1), layout.goal
                if layout.mixed or message.role not in ("user", "assistant"):
                    label = f"{message.role}: "
            talk = part.kind == "text" and boost == 1 and "\n" not in part.text.strip()
            tool = part.kind in _WEIGHTS
            for number, text in enumerate(_part_sentences(part, asked=message.request)):
                if place is not None and number == _ASKED:
                    weight, place, label = _PASTED_WEIGHT, None, f"{message.role}: "
                found = traits(text)
                worth = weight * (_ERROR_WEIGHT if ERROR.search(text) else 1)
                dated = day if days > 1 or is_relative(found) else ""
                wish = place is not None
                yield Sentence(text, found, message.position, worth, place, dated + label, talk, wish, tool)


def focused(found: Sequence[Sentence], focus: str) -> list[Sentence]:
    """The sentences, with more weight for those that share a telling word with the focus, and some for what else the
    same message says."""
    subject = {word for word in words(focus) if word not in PLAIN}
    if not subject:
        return list(found)
    shares = [not subject.isdisjoint(sentence.traits.words) for sentence in found]
    lines = {sentence.line for sentence, one in zip(found, shares, strict=True) if one}
    return [
        replace(sentence, weight=sentence.weight * (_SUBJECT if one else _BESIDE if sentence.line in lines else 1))
        for sentence, one in zip(found, shares, strict=True)
    ]


def _asks(message: SpanMessage) -> bool:
    said = [text for text in message.texts("text") if text.strip()]
    return bool(said) and said[-1].rstrip().endswith(QUESTION_ENDS)


def _part_sentences(part: Part, *, asked: bool) -> list[str]:
    if part.kind in ("thinking", "media"):
        return []
    if part.kind == "call":
        values = call_values(part.text)
        return [values] if 0 < len(values) <= _CALL_CHARS else []
    found = [_BULLET.sub("", sentence, count=1) for sentence in sentences(part.text)]
    return [sentence for sentence in found if sentence and not (part.kind == "text" and _is_empty(sentence, asked))]


def _is_empty(sentence: str, asked: bool) -> bool:
    """What greets, and of an agent what says nothing but that it heard; of a user that may answer a question."""
    return only_greets(sentence) or (not asked and only_acknowledges(sentence))


def request_weight(messages: Sequence[SpanMessage]) -> float:
    """How much more a user's words weigh. Beside an assistant that says ten times as much each is an intention; in a
    chat of two who speak alike it is not. Where an agent uses tools what it was asked weighs most."""
    if any(part.kind in ("call", "result") for message in messages for part in message.parts):
        return _MAX_BOOST
    asked = [sum(map(len, m.texts("text"))) for m in messages if m.request]
    said = [sum(map(len, m.texts("text"))) for m in messages if not m.request]
    return min(_MAX_BOOST, max(1.0, fmean(said) / (fmean(asked) or 1))) if asked and said else 1.0
