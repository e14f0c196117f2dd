"""Several summaries as one, before it is cut to its bound: what a merge without a model comes to."""

from __future__ import annotations

from collections.abc import Sequence

from .names import is_name_line, short_lines
from .sections import Section, item, meaning, parse, render, section


def joined(texts: Sequence[str], headings: Sequence[str]) -> str:
    """The texts section by section, oldest first, each line once; files newest first. Of an item that is in several the
    last is right. Texts that have not the asked headings, one after the other."""
    parsed = [parse(text, headings) for text in texts]
    if any(one.missing for one in parsed) or not headings:
        return "\n\n".join(texts)
    return render(_joined(each) for each in zip(*(one.sections for one in parsed), strict=True))


def _joined(same: Sequence[Section]) -> Section:
    heading = same[0]["heading"]
    if meaning(heading) == "files":
        return section(heading, "\n".join(dict.fromkeys(line for one in reversed(same) for line in _lines(one))))
    lines: dict[str, str] = {}
    names: list[str] = []
    for line in (line for one in same for line in _lines(one)):
        if is_name_line(line):
            names.append(line)
        elif checked := item(line):
            lines.pop(checked["text"], None)
            lines[checked["text"]] = line
        else:
            lines.setdefault(line, line)
    return section(heading, "\n".join([*lines.values(), *short_lines(*reversed(names))]))


def _lines(one: Section) -> list[str]:
    return one["text"].splitlines()
