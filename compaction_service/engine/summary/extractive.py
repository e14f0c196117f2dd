"""The summary that needs no model (semantics 7, Fallback): the span's own sentences, in the asked sections.

What users asked fills the section about the goal, the newest requests make the checklist, the paths make the list of
files, and the room that is left goes to the sentences that add most (`select`). The previous summary comes first and
is thinned only where the bound leaves no room for it, so that facts survive many rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from .bound import cut
from .bullets import cost, group, opening, placed
from .checklist import checklist
from .files import file_list, mentioned_files, named_files
from .gather import Sentence, layout_of, new_sentences, old_sentences
from .names import fitting, name_line, ranked_names
from .sections import Parsed, Section, meaning, one_line, parse, render, section
from .select import Candidate, select
from .span import Count, SpanMessage, with_tool_names
from .text import clean

FILES_SHARE = 0.25  # of the room, at most
STEPS_SHARE = 0.25
NAMES_SHARE = 0.2
_FILLS = 3  # times that room which was reserved and not needed goes to more sentences
_ENOUGH = 0.01  # of the room left is as good as full


@dataclass(frozen=True, slots=True)
class Extract:
    text: str  # with the prefix
    sections: list[Section]


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
    layout = layout_of(headings)
    messages = with_tool_names(messages)
    old = parse(clean(previous or "").removeprefix(prefix), sections)
    limit = min(bound, target + (count(previous) if previous else 0))
    room = max(0, limit - count(prefix) - sum(count(f"## {heading}") + 3 for heading in headings))

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

    before = list(old_sentences(old, headings, layout, messages))
    kept = _choose(before, [_candidate(one, count) for one in before], min(room, max(room - target, room // 2)))
    room -= int(sum(cost(sentence, count) for sentence in kept))
    found = [sentence for sentence in new_sentences(messages, layout) if sentence.line not in shown]
    candidates = [_candidate(sentence, count) for sentence in found]
    text = ""
    for _ in range(_FILLS):
        kept = _choose(found, candidates, room, kept)
        bodies = placed(kept, layout, len(headings))
        if layout.steps is not None:
            bodies[layout.steps].insert(0, todo)
        if layout.files is not None:
            bodies[layout.files] = [listed]
        bodies[layout.facts[-1]].append(fitting(names, chain.from_iterable(bodies), for_names, count))
        filled = [section(h, "\n".join(filter(None, body))) for h, body in zip(headings, bodies, strict=True)]
        text = render(filled) if sections else filled[0]["text"]
        room = limit - count(prefix + text)
        if room <= limit * _ENOUGH:
            break
    text = cut(text, bound, count, prefix)
    return Extract(text, parse(text.removeprefix(prefix), sections).sections)


def _files(messages: Sequence[SpanMessage], old: Parsed) -> list[str]:
    """The span's files, then those the previous summary lists."""
    listed = (name for one in old.sections if meaning(one["heading"]) == "files" for name in named_files(one["text"]))
    return list(dict.fromkeys([*mentioned_files(messages), *listed]))


def _choose(
    found: Sequence[Sentence], candidates: Sequence[Candidate], room: float, kept: Sequence[Sentence] = ()
) -> list[Sentence]:
    """`kept`, and those of `found` that there is room for, in their order; what is said twice is kept once."""
    has = {sentence.text for sentence in kept}
    first: dict[str, int] = {}
    for number, sentence in enumerate(found):
        first.setdefault(sentence.text, number)
    distinct = [number for text, number in first.items() if text not in has]
    seen = (word for sentence in kept for word in sentence.traits.words)
    chosen = {distinct[number] for number in select([candidates[number] for number in distinct], room, seen)}
    mine = set(map(id, kept))
    old = [sentence for sentence in kept if sentence.line < 0]
    return old + [one for number, one in enumerate(found) if number in chosen or (one.line > 0 and id(one) in mine)]


def _candidate(one: Sentence, count: Count) -> Candidate:
    return Candidate(one.traits, cost(one, count), one.weight, group(one), count(opening(one)))
