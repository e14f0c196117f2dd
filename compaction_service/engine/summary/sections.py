"""The form of a summary: plain Markdown, a line `## <heading>` per section, checklists as `- [ ]` and `- [x]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from .lexicon import HEADINGS

Meaning = Literal["goal", "steps", "files", "errors", "other"]
_MEANINGS: tuple[Meaning, ...] = ("files", "steps", "errors", "goal")

_HASHES = re.compile(r" {0,3}(#{1,4})(?!#)\s*(.*)")
_BOLD = re.compile(r" {0,3}(?:\d{1,2}[.)]\s{0,3})?(\*\*|__)(.+?)\1\s*(.*)")
_NUMBER = re.compile(r"\d{1,2}[.)]\s+")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\[([ xX✓✔])?\]\s*(.*)")
_MAX_HEADING = 300  # characters of a line that may be a heading


class Item(TypedDict):
    text: str
    done: bool


class Section(TypedDict):
    heading: str
    text: str
    items: NotRequired[list[Item]]  # of its checklist, where it has one


@dataclass(frozen=True, slots=True)
class Parsed:
    """A summary's sections in the asked order, the asked headings it lacks, and what came before the first."""

    sections: list[Section]
    missing: list[str]
    preamble: str


def one_line(heading: str) -> str:
    return " ".join(heading.split())


def parse(text: str, headings: Sequence[str]) -> Parsed:
    """Find the asked headings, tolerant to case, blanks, numbering, `#` level 1 to 4 and bold; text under a heading
    that was not asked stays in the section before it. Lines inside closed code fences are never headings.

    No headings asked: the whole text is the preamble."""
    wanted = {_key(heading): one_line(heading) for heading in headings}
    bodies: dict[str, list[str]] = {}
    preamble: list[str] = []
    body = preamble
    lines = text.splitlines()
    fenced = _fenced(lines)
    for number, line in enumerate(lines):
        found = None if number in fenced else _heading(line, wanted)
        if not found:
            body.append(line)
            continue
        body = bodies.setdefault(found[0], [])
        if found[1]:
            body.append(found[1])
    asked = list(dict.fromkeys(wanted.values()))
    return Parsed(
        [section(heading, "\n".join(bodies[heading]).strip()) for heading in asked if heading in bodies],
        [heading for heading in asked if heading not in bodies],
        "\n".join(preamble).strip(),
    )


def _fenced(lines: list[str]) -> set[int]:
    marks = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    return {n for start, end in zip(marks[::2], marks[1::2], strict=False) for n in range(start, end)}


def _heading(line: str, wanted: dict[str, str]) -> tuple[str, str] | None:
    """The asked heading this line is, and what follows it on the line."""
    if len(line) > _MAX_HEADING:
        return None
    if found := _HASHES.match(line):
        title, rest = found[2].strip(" #"), ""
        if bold := _BOLD.fullmatch(title):
            title, rest = bold[2], bold[3]
    elif found := _BOLD.match(line):
        title, rest = found[2], found[3]
    else:
        return None
    if (key := _key(title)) in wanted:
        return wanted[key], rest.lstrip(" :\uff1a")
    head, colon, after = title.replace("\uff1a", ":").partition(":")
    if colon and (key := _key(head)) in wanted:
        return wanted[key], f"{after.strip()} {rest}".strip()
    return None


def _key(title: str) -> str:
    return one_line(_NUMBER.sub("", title.strip(" #*_:\uff1a"), count=1)).strip(" *_:\uff1a").casefold()


def section(heading: str, text: str) -> Section:
    out: Section = {"heading": heading, "text": text}
    if found := items(text):
        out["items"] = found
    return out


def item(line: str) -> Item | None:
    """The checklist item this line is, if any."""
    found = _ITEM.match(line)
    return {"text": found[2].strip(), "done": (found[1] or " ") != " "} if found else None


def items(text: str) -> list[Item]:
    return [found for line in text.splitlines() if (found := item(line))]


def heading_line(heading: str) -> str:
    return f"## {heading}"


def render(sections: Iterable[Section]) -> str:
    """The summary's text; a section without text keeps its heading."""
    return "\n\n".join(f"{heading_line(s['heading'])}\n{s['text']}".strip() for s in sections)


def meaning(heading: str) -> Meaning:
    """What a heading asks for, told by its words in about twenty languages."""
    padded = f" {one_line(heading).casefold()}"
    for name in _MEANINGS:
        if any((f" {stem}" if stem[0] < "\u0e00" else stem) in padded for stem in HEADINGS[name]):
            return name
    return "other"
