"""Notes in a model's answer: plain lines, and what must be so for a note to be kept (semantics 7).

    - [decision !4 @12,15 >3] Use PostgreSQL 16, not MySQL.

That is: kind, importance 1 to 5, the positions it comes from, the number of a note before that it replaces, the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from .accept import Answer, Reason, is_refusal, unfinished, unwrap
from .notes import KINDS, Found, Kind, Note, note
from .span import SpanMessage
from .terms import terms
from .text import clean, words
from .transcript import MARKS, render

NONE = "none"  # the whole answer where there is nothing to note
DEFAULT_IMPORTANCE = 3
_LINE = re.compile(r"\s{0,8}(?:[-*+\u2022]|\d{1,3}[.)])?\s{0,4}\[([^\[\]\n]{3,200})\][\s:]{0,4}(\S.*)")
_KIND = re.compile(r"[a-z_ -]{4,20}")
_IMPORTANCE = re.compile(r"!\s?(\d)")
_AT = re.compile(r"[@#]\s?([\d,\s]{1,150})")
_REPLACES = re.compile(r">\s?([\d,\s]{1,60})")
_NUMBER = re.compile(r"\d{1,9}")
_MOST = 500  # lines of one answer that are looked at
_BORNE_OUT = 0.25  # of a note's longer words; so many must be in the messages it names
_SPOKEN: frozenset[Kind] = frozenset({"decision", "commitment", "preference", "correction"})  # not by a tool's result


@dataclass(frozen=True, slots=True)
class Noted:
    """The notes an answer is trusted with, and those that their messages do not bear out."""

    found: list[Found]
    not_borne_out: list[Note]


def read(answer: Answer, messages: Sequence[SpanMessage], known: Sequence[Note]) -> Noted | Reason:
    """The notes in an answer, or why it is refused.

    `messages` and `known`: what the model was shown, the notes numbered from 1. A note stays only where the messages it
    names were shown, hold its names and numbers, and share words with it. Of a decision, commitment, preference or
    correction what users and the agent said in them must do so: a tool's result takes none, and replaces none.
    """
    if fault := unfinished(answer):
        return fault
    text = unwrap(clean(answer.text or ""))
    if not text.strip():
        return "empty"
    if is_refusal(text):
        return "refusal"
    if len(MARKS.findall(text)) > 1:
        return "echo"
    shown = {message.position: message for message in messages}
    seen: dict[int, _Shown] = {}
    kept: list[Found] = []
    dropped: list[Note] = []
    for line in text.splitlines()[:_MOST]:
        one = _parse(line, shown.keys(), len(known))
        if one is None:
            continue
        for position in one.note.positions:
            seen.setdefault(position, _Shown.of(shown[position]))
        named = [seen[position] for position in one.note.positions]
        said = _is_borne_out(one.note, [message.said for message in named])
        if not said and (one.note.kind in _SPOKEN or not _is_borne_out(one.note, [message.all for message in named])):
            dropped.append(one.note)
            continue
        weaker = tuple(i for i in one.replaces if said or known[i].kind not in _SPOKEN)
        kept.append(Found(one.note, weaker))
    if kept or (not dropped and _says_none(text)):
        return Noted(kept, dropped)
    return "no_notes"


def _says_none(text: str) -> bool:
    return text.strip(" \t\n-*+.[]()`").casefold().startswith(NONE) and len(text) < 200


def _parse(line: str, shown: Collection[int], known: int) -> Found | None:
    """The note in a line; None: it is none, or it names no message that was shown."""
    found = _LINE.match(line)
    kind = _kind(found[1]) if found else None
    if not found or kind is None:
        return None
    importance = _IMPORTANCE.search(found[1])
    positions = [number for number in _numbers(_AT, found[1]) if number in shown]
    replaces = tuple(number - 1 for number in _numbers(_REPLACES, found[1]) if 1 <= number <= known)
    try:
        made = note(kind, int(importance[1]) if importance else DEFAULT_IMPORTANCE, found[2], positions)
    except ValueError:
        return None
    return Found(made, replaces)


def _kind(head: str) -> Kind | None:
    found = _KIND.match(head.strip().lower())
    if not found:
        return None
    name = found[0].strip(" -_").replace("-", " ").replace("_", " ").removesuffix("s")
    return next((kind for kind in KINDS if name in (kind.replace("_", " "), kind.rpartition("_")[2])), None)


def _numbers(pattern: re.Pattern[str], head: str) -> list[int]:
    return [int(number) for found in pattern.findall(head) for number in _NUMBER.findall(found)]


@dataclass(frozen=True, slots=True)
class _Text:
    """A text for looking things up."""

    text: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Text:
        lower = text.casefold()
        return cls(lower, frozenset(words(lower)))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A message as the model read it, and of it what a user or the agent said: texts and calls, no results."""

    all: _Text
    said: _Text

    @classmethod
    def of(cls, message: SpanMessage) -> _Shown:
        speaks = message.role in ("user", "assistant")
        said = tuple(part for part in message.parts if speaks and part.kind in ("text", "call"))
        whole, spoken = _Text.of(render([message])), _Text("", frozenset())
        if said:
            spoken = whole if said == message.parts else _Text.of(render([replace(message, parts=said)]))
        return cls(whole, spoken)


def _is_borne_out(one: Note, texts: Sequence[_Text]) -> bool:
    # A digit may stand for a word ("three days"); longer numbers and names must be there as they are.
    names = [term.text.casefold() for term in terms(one.text) if term.kind != "number" or len(term.text) > 1]
    if not all(any(name in text.text for text in texts) for name in names):
        return False
    telling = {word for word in words(one.text) if len(word) > 3 or not word.isascii()} or set(words(one.text))
    shared = sum(any(word in text.words for text in texts) for word in telling)
    return shared >= max(1, _BORNE_OUT * len(telling))
