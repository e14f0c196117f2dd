"""The summary that needs no model (semantics 7, Fallback): the span's own sentences, in the asked sections.

What users asked comes first and fills the section about the goal, the newest requests make the checklist, the paths
make the list of files, and the room that is left goes to the sentences that add most (`select`), those of the previous
summary first. What leaves the checklist is told with the goal, so that what users said survives many rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from .bound import cut
from .bullets import placed
from .checklist import Checklist, checklist
from .files import file_list, named_files, used_files
from .gather import focused, layout_of, new_sentences, old_sentences, request_weight
from .joining import joined
from .names import fitting, name_line, ranked_names
from .pool import Pool
from .sections import Parsed, Section, meaning, one_line, parse, render, section
from .span import Count, SpanMessage, with_tool_names
from .text import clean

# Of the room, at most:
ASKED_SHARE = 0.5  # what users said, the checklist included
STEPS_SHARE = 0.25  # the checklist
FILES_SHARE = 0.25
NAMES_SHARE = 0.2
TOOLS_SHARE = 0.5  # of lines that tools printed
_FILLS = 4  # times that room which was reserved and not needed goes to more sentences
_ENOUGH = 0.003  # of the room left is as good as full


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
    focus: str = "",
) -> Extract:
    """An extractive summary of the previous summary and the span: at most `bound` tokens with the prefix, about
    `target` of them new; more where users said more. What shares words with `focus` has the room first.
    Deterministic, linear in the text; any text will do."""
    headings = list(dict.fromkeys(map(one_line, sections))) or [""]
    layout = layout_of(headings)
    messages = with_tool_names(messages)
    old = parse(clean(previous or "").removeprefix(prefix), sections)
    limit = min(bound, target + (count(previous) if previous else 0))
    room = max(0, limit - count(prefix) - sum(count(f"## {heading}") + 3 for heading in headings))

    todo = Checklist()
    if layout.steps is not None:
        todo = checklist(messages, old.sections, int(room * STEPS_SHARE), count)
    before = list(old_sentences(old, headings, layout, messages, todo))
    found = [one for one in (*before, *new_sentences(messages, layout)) if one.text not in todo.shown]
    pool = Pool(focused(found, focus), count)
    asked, older = pool.those(lambda one: one.asked), pool.those(lambda one: one.line < 0)
    for_todo = count(todo.text)
    for_asked = for_todo + pool.cost(asked)
    if for_asked <= bound / 2:
        # What users said has more room than was asked for, where that holds it.
        more = int(max(0, min(for_asked - room * ASKED_SHARE, bound - limit)))
        limit, room = limit + more, room + more
        pool.keep(asked, room - for_todo)
    elif request_weight(messages) > 1:
        pool.keep(asked, room * ASKED_SHARE - for_todo)
    share = room
    room = int(room - for_todo - pool.spent)

    files, others = _files(messages, old)
    names = ranked_names(messages, [old.preamble, *(one["text"] for one in old.sections)])
    listed = ""
    if layout.files is None:
        others = [*files, *others]
    else:
        listed = file_list(files, min(room, int(share * FILES_SHARE)), count)
    room -= count(listed)
    for_names = min(int(share * NAMES_SHARE), count(name_line(names)) + len(names) + 2)
    for_names += min(int(share * FILES_SHARE) - count(listed), count(name_line(others)) + len(others))
    for_names = min(room, for_names)
    names = [*others, *names]
    room -= for_names

    room -= int(pool.keep(older, min(room, max(room - target, room // 2))))
    tools = pool.those(lambda one: one.tool)
    room -= int(pool.keep(tools, min(room, share * TOOLS_SHARE - pool.cost(pool.kept_of(tools)))))
    rest = pool.those(lambda one: not one.tool)
    text = ""
    for _ in range(_FILLS):
        pool.keep(rest, room)
        bodies = placed(pool.kept, layout, len(headings))
        if layout.steps is not None:
            bodies[layout.steps].insert(0, todo.text)
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


def merge(texts: Sequence[str], sections: Sequence[str], bound: int, count: Count, focus: str = "") -> Extract:
    """Summaries, oldest first, as one of at most `bound` tokens, chosen from as from a span."""
    previous = joined(texts, sections)
    return extract((), sections=sections, bound=bound, target=0, count=count, previous=previous, focus=focus)


def _files(messages: Sequence[SpanMessage], old: Parsed) -> tuple[list[str], list[str]]:
    """The span's files and those the previous summary lists, and other paths of the span."""
    listed = (name for one in old.sections if meaning(one["heading"]) == "files" for name in named_files(one["text"]))
    return used_files(messages, listed)
