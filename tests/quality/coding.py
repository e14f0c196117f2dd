"""Coding sessions: which exact names, numbers and errors of a session its summary still has.

Of each distinct one in what was said, called and answered:

    path         its text stands in the summary
    identifier   likewise, not inside a longer word; URLs too
    number       likewise; of two digits or more, and not where it only numbers the lines of a listing
    error        a line of the summary has at least half of the words of that line
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from compaction_service.engine.summary.extractive import extract
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.engine.summary.terms import terms

from .spans import conversations, count, texts

SOURCES = ("swe_agent", "openhands", "aider", "pi_mono")
RATIO = 8
SECTIONS = ("Overall Goal", "Next Steps", "Active Files")
LEAST_TOKENS = 2000  # a shorter session would not be compacted
KINDS = ("path", "identifier", "number", "error")

_LISTING = re.compile(r"^\s*\d+\s*[:|\t\u2192-]|^\s*\d+$|:\d+:|^@@.*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,:/%-]*\d%?(?!\w)")
_ERROR = re.compile(
    r"\b(?:[A-Z]\w{2,40}(?:Error|Exception|Warning)|Error|ERROR|error:|FAILED|Traceback|fatal:|panic:"
    r"|[Pp]ermission denied|not found)"
)
_ERROR_CHARS = 300  # a longer line is data
_WORD = re.compile(r"\w+")


def sessions(folder: Path) -> Iterator[tuple[str, tuple[SpanMessage, ...]]]:
    for source in SOURCES:
        for one in conversations(folder / f"{source}.jsonl"):
            if sum(map(count, texts(one))) >= LEAST_TOKENS:
                yield source, one


def summary(messages: Sequence[SpanMessage], ratio: float = RATIO) -> str:
    room = int(sum(map(count, texts(messages))) / ratio)
    return extract(messages, sections=SECTIONS, bound=room, target=room, count=count).text


def named(found: Iterable[str]) -> dict[str, set[str]]:
    """The distinct names, numbers and error lines of texts, by kind."""
    out: dict[str, set[str]] = defaultdict(set)
    for text in found:
        for term in terms(text):
            if term.kind != "number":
                out["identifier" if term.kind == "url" else term.kind].add(term.text)
        out["number"].update(_NUMBER.findall(_LISTING.sub(" ", text)))
        lines = (line.strip() for line in text.splitlines() if _ERROR.search(line))
        out["error"].update(line for line in lines if len(line) <= _ERROR_CHARS)
    return out


def kept(wanted: dict[str, set[str]], made: str) -> dict[str, int]:
    """How many of each kind the summary has."""
    lines = [set(_WORD.findall(line)) for line in made.splitlines()]
    numbers = set(_NUMBER.findall(made))
    return {
        "path": sum(name in made for name in wanted["path"]),
        "identifier": sum(_whole(name, made) for name in wanted["identifier"]),
        "number": sum(number in numbers for number in wanted["number"]),
        "error": sum(_has_half(error, lines) for error in wanted["error"]),
    }


def _whole(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        around = text[max(0, at - 1) : at] + text[at + len(name) : at + len(name) + 1]
        if not re.search(r"\w", around):
            return True
        at = text.find(name, at + 1)
    return False


def _has_half(error: str, lines: Sequence[set[str]]) -> bool:
    words = set(_WORD.findall(error))
    return any(2 * len(words & line) >= len(words) for line in lines)


def figures(found: Iterable[tuple[str, Sequence[SpanMessage]]]) -> dict[str, dict[str, float]]:
    """Shares kept, by source and over all."""
    have: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    all_of: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    for source, messages in found:
        wanted = named(texts(messages))
        for kind, number in kept(wanted, summary(messages)).items():
            for name in (source, "all"):
                have[name][kind] += number
                all_of[name][kind] += len(wanted[kind])
    return {
        name: {kind: have[name][kind] / (all_of[name][kind] or 1) for kind in KINDS}
        | {"rest": sum(have[name][k] for k in KINDS[1:]) / sum(all_of[name][k] for k in KINDS[1:])}
        | {f"{kind}s": float(all_of[name][kind]) for kind in KINDS}
        for name in have
    }
