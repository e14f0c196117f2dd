"""The checklist of an extractive summary. It understands nothing: what was asked, and whether it was answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .bound import clip
from .sections import Item, Section, items
from .select import only_greets
from .span import Count, SpanMessage
from .text import sentences

_NEWEST_REQUESTS = 3
_OLD_DONE = 5
_ITEM_CHARS = 200
_CLIPPED = "\u2026"
_REFERENCE = re.compile(r" \(#(\d{1,12})\)$")


@dataclass(frozen=True, slots=True)
class Checklist:
    """`shown`: the sentences that are in it whole. `requests`, `others`: items of the previous summary that are not in
    it any more, of users' requests and such as a model wrote."""

    text: str = ""
    shown: frozenset[str] = frozenset()
    requests: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def checklist(messages: Sequence[SpanMessage], old: Sequence[Section], room: int, count: Count) -> Checklist:
    """Items carried forward from the previous summary's sections and the newest requests, at most `room` tokens.

    A request is done once a completed response follows it. It carries its message's number, `(#12)`, by which the
    next round sees that. Where room is short, open items stay before done ones, and newer before older. The request
    that begins a conversation is its goal; it is an item as well while it is open.
    """
    answered = max((m.position for m in messages if m.response), default=0)
    carried = [_updated(item, answered) for section in old for item in items(section["text"])]
    entries = [*(i for i in carried if i["done"]), *(i for i in carried if not i["done"])]
    too_old = range(max(0, sum(i["done"] for i in carried) - _OLD_DONE))
    asked = [m for m in messages if m.request and not only_greets("\n".join(m.texts("text")))]
    for message in asked[-_NEWEST_REQUESTS:]:
        text = " ".join(sentences("\n".join(message.texts("text"))))
        done = message.position < answered
        if text and not (done and not old and message is asked[0]):
            entries.append(Item(text=f"{_opening(text)} (#{message.position})", done=done))
    lines: dict[int, str] = {}
    for number in sorted(range(len(too_old), len(entries)), key=lambda n: (entries[n]["done"], -n)):
        line = f"- [{'x' if entries[number]['done'] else ' '}] {entries[number]['text']}"
        room -= count(f"{line}\n")
        if room < 0:
            break
        lines[number] = line
    goal = asked[0].position if asked and not old else None
    shown = (
        text for text, position in (referred(entries[n]["text"]) for n in lines) if goal is None or position != goal
    )
    gone = [referred(entries[n]["text"]) for n in range(len(carried)) if n not in lines]
    return Checklist(
        "\n".join(lines[number] for number in sorted(lines)),
        frozenset(sentence for text in shown for sentence in sentences(text)),
        # Of a clipped one the whole sentence is in the section about the goal, where it had room.
        tuple(text for text, position in gone if position and not text.endswith(_CLIPPED)),
        tuple(text for text, position in gone if not position),
    )


def _updated(item: Item, answered: int) -> Item:
    _, position = referred(item["text"])
    done = item["done"] or (position is not None and position < answered)
    return Item(text=item["text"], done=done)


def referred(text: str) -> tuple[str, int | None]:
    """The text of an item without the number of its message, and that."""
    found = _REFERENCE.search(text[-20:])
    return (text[: -len(found[0])], int(found[1])) if found else (text, None)


def _opening(text: str) -> str:
    """The text's first sentences, as many as an item holds."""
    if len(text) <= _ITEM_CHARS:
        return text
    out = ""
    for sentence in sentences(text[: 2 * _ITEM_CHARS]):
        if len(out) + len(sentence) >= _ITEM_CHARS:
            break
        out = f"{out} {sentence}".strip()
    return out or clip(text, _ITEM_CHARS, len) + _CLIPPED
