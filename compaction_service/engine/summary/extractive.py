"""The summary that needs no model (semantics 7, Fallback): the span's own sentences, in the asked sections.

What users asked fills the section about the goal, the newest requests make the checklist, the paths make the list of
files, and the room that is left goes to the sentences that add most (`select`). The previous summary comes first and
is thinned only where the bound leaves no room for it, so that facts survive many rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from .bound import cut
from .checklist import checklist
from .files import call_values, file_list, mentioned_files, named_files
from .lexicon import ERROR
from .names import fitting, is_name_line, name_line, ranked_names
from .sections import Parsed, Section, item, meaning, one_line, parse, render, section
from .select import Candidate, Traits, is_relative, select, traits
from .span import Count, Part, SpanMessage, with_tool_names
from .text import clean, sentences

FILES_SHARE = 0.25  # of the room, at most
STEPS_SHARE = 0.25
NAMES_SHARE = 0.15
_CALL_CHARS = 300  # a longer call writes a file
_MAX_BOOST = 4.0
_WEIGHTS = {"call": 1.0, "result": 0.5}
_ERROR_WEIGHT = 3.0
_BULLET = re.compile(r"^\s{0,8}(?:[-*+•>]|#{1,6}|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Extract:
    text: str  # with the prefix
    sections: list[Section]


@dataclass(frozen=True, slots=True)
class _Layout:
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


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    traits: Traits
    line: int  # sentences of one line are shown together
    weight: float
    section: int | None = None  # None: a fact, wherever facts go
    label: str = ""


def extract(
    messages: Sequence[SpanMessage],
    *,
    sections: Sequence[str],
    bound: int,
    target: int,
    count: Count,
    previous: str | None = None,
    prefix: str = "",
) -> Extract:
    """An extractive summary of the previous summary and the span: at most `bound` tokens with the prefix, about
    `target` of them new. Deterministic, linear in the text; any text will do."""
    headings = list(dict.fromkeys(map(one_line, sections))) or [""]
    layout = _layout(headings)
    messages = with_tool_names(messages)
    old = parse(clean(previous or "").removeprefix(prefix), sections)
    frame = count(prefix) + sum(count(f"## {heading}") + 3 for heading in headings)
    room = max(0, min(bound, target + (count(previous) if previous else 0)) - frame)

    files = _files(messages, old)
    names = ranked_names(messages, [old.preamble, *(one["text"] for one in old.sections)])
    listed, todo, shown = "", "", frozenset[int]()
    if layout.files is None:
        names = [*files, *names]
    else:
        listed = file_list(files, int(room * FILES_SHARE), count)
    if layout.steps is not None:
        todo, shown = checklist(messages, old.sections, int(room * STEPS_SHARE), count)
    for_names = min(int(room * NAMES_SHARE), count(name_line(names)) + len(names) + 2)
    room -= count(listed) + count(todo) + for_names

    kept = _choose(_old_sentences(old, headings, layout), min(room, max(room - target, room // 2)), count)
    room -= sum(_cost(sentence, count) for sentence in kept)
    kept += _choose((s for s in _new_sentences(messages, layout) if s.line not in shown), room, count, kept)

    bodies = _placed(kept, layout, len(headings))
    if layout.steps is not None:
        bodies[layout.steps].insert(0, todo)
    if layout.files is not None:
        bodies[layout.files] = [listed]
    bodies[layout.facts[-1]].append(fitting(names, chain.from_iterable(bodies), for_names, count))
    filled = [section(h, "\n".join(filter(None, body))) for h, body in zip(headings, bodies, strict=True)]
    text = cut(render(filled) if sections else filled[0]["text"], bound, count, prefix)
    return Extract(text, parse(text.removeprefix(prefix), sections).sections)


def _layout(headings: Sequence[str]) -> _Layout:
    meanings = [meaning(heading) for heading in headings]

    def first(name: str) -> int | None:
        return meanings.index(name) if name in meanings else None

    steps, files, errors = first("steps"), first("files"), first("errors")
    goal = first("goal")
    if goal is None:
        goal = next((n for n, name in enumerate(meanings) if name not in ("steps", "files", "errors")), 0)
    facts = tuple(n for n, name in enumerate(meanings) if n != goal and name in ("other", "goal"))
    return _Layout(goal, steps, files, errors, facts or ((goal,) if steps is None else (steps,)))


def _files(messages: Sequence[SpanMessage], old: Parsed) -> list[str]:
    """The span's files, then those the previous summary lists."""
    listed = (name for one in old.sections if meaning(one["heading"]) == "files" for name in named_files(one["text"]))
    return list(dict.fromkeys([*mentioned_files(messages), *listed]))


def _old_sentences(old: Parsed, headings: Sequence[str], layout: _Layout) -> Iterator[_Sentence]:
    """What the previous summary says, under its headings; checklists and files are carried on their own."""
    number = 0
    for heading, text in [("", old.preamble), *((one["heading"], one["text"]) for one in old.sections)]:
        place = headings.index(heading) if heading in headings else layout.facts[0]
        if place == layout.files:
            continue
        for line in text.splitlines():
            number -= 1
            if (layout.steps is not None and item(line)) or is_name_line(line):
                continue
            for sentence in sentences(_BULLET.sub("", line, count=1)):
                yield _Sentence(sentence, traits(sentence), number, 1.0, place)


def _new_sentences(messages: Sequence[SpanMessage], layout: _Layout) -> Iterator[_Sentence]:
    boost = _request_boost(messages)
    first = next((m.position for m in messages if m.request), None)
    for message in messages:
        day = message.at.strftime("[%Y-%m-%d] ") if message.at else ""
        for part in message.parts:
            weight, place, label = 1.0, None, ""
            if part.kind in ("call", "result"):
                weight, label = _WEIGHTS[part.kind], f"{part.name or 'tool'}: "
            else:
                if message.request:
                    weight, place = boost * (2 if message.position == first else 1), layout.goal
                if layout.mixed or message.role not in ("user", "assistant"):
                    label = f"{message.role}: "
            for text in _part_sentences(part):
                found = traits(text)
                worth = weight * (_ERROR_WEIGHT if ERROR.search(text) else 1)
                dated = day if is_relative(found) else ""
                yield _Sentence(text, found, message.position, worth, place, dated + label)


def _part_sentences(part: Part) -> list[str]:
    if part.kind in ("thinking", "media"):
        return []
    if part.kind == "call":
        values = call_values(part.text)
        return [values] if 0 < len(values) <= _CALL_CHARS else []
    return [bare for sentence in sentences(part.text) if (bare := _BULLET.sub("", sentence, count=1))]


def _request_boost(messages: Sequence[SpanMessage]) -> float:
    """How much more a user's words weigh. Beside an assistant that says ten times as much each is an intention; in a
    chat of two who speak alike it is not."""
    asked = [sum(map(len, m.texts("text"))) for m in messages if m.request]
    said = [sum(map(len, m.texts("text", "result"))) for m in messages if not m.request]
    return min(_MAX_BOOST, max(1.0, fmean(said) / (fmean(asked) or 1))) if asked and said else 1.0


def _cost(sentence: _Sentence, count: Count) -> int:
    return count(f"\n- {sentence.label}{sentence.text}")


def _choose(found: Iterable[_Sentence], room: int, count: Count, kept: Sequence[_Sentence] = ()) -> list[_Sentence]:
    unlike = {s.text: s for s in reversed(list(found))}
    for sentence in kept:
        unlike.pop(sentence.text, None)
    distinct = list(reversed(unlike.values()))
    candidates = [Candidate(s.traits, _cost(s, count), s.weight) for s in distinct]
    seen = (word for sentence in kept for word in sentence.traits.words)
    return [distinct[number] for number in select(candidates, room, seen)]


def _placed(kept: Sequence[_Sentence], layout: _Layout, size: int) -> list[list[str]]:
    """The bullets of each section. Facts go to the sections nothing else goes to, spread over them in their order,
    errors to the one about errors."""
    places: list[list[_Sentence]] = [[] for _ in range(size)]
    facts = []
    for sentence in kept:
        if sentence.section is not None:
            places[sentence.section].append(sentence)
        elif layout.errors is not None and ERROR.search(sentence.text):
            places[layout.errors].append(sentence)
        else:
            facts.append(sentence)
    for number, sentence in enumerate(facts):
        places[layout.facts[number * len(layout.facts) // len(facts)]].append(sentence)
    return [list(_bullets(place)) for place in places]


def _bullets(kept: Sequence[_Sentence]) -> Iterator[str]:
    last: _Sentence | None = None
    line = ""
    for sentence in kept:
        if last and (last.line, last.label) == (sentence.line, sentence.label):
            line = f"{line} {sentence.text}"
        else:
            if line:
                yield line
            line = f"- {sentence.label}{sentence.text}"
        last = sentence
    if line:
        yield line
