"""The checklist of an extractive summary. It understands nothing: what was asked, and whether it was answered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .bound import clip
from .sections import Item, Section, items
from .select import only_greets
from .span import Count, SpanMessage
from .text import sentences

_NEWEST_REQUESTS = 3
_OLD_DONE = 5
_ITEM_CHARS = 200
_REFERENCE = re.compile(r" \(#(\d{1,12})\)$")


def checklist(
    messages: Sequence[SpanMessage], old: Sequence[Section], room: int, count: Count
) -> tuple[str, frozenset[int]]:
    """Items carried forward from the previous summary's sections and the newest requests, at most `room` tokens; and
    the positions of requests that are in it whole.

    A request is done once a completed response follows it. It carries its message's number, `(#12)`, by which the
    next round sees that. Where room is short, open items stay before done ones, and newer before older.
    """
    answered = max((m.position for m in messages if m.response), default=0)
    carried = [_updated(item, answered) for section in old for item in items(section["text"])]
    entries = [*[i for i in carried if i["done"]][-_OLD_DONE:], *(i for i in carried if not i["done"])]
    whole: dict[int, int] = {}
    requests = [m for m in messages if m.request and not only_greets("\n".join(m.texts("text")))]
    for message in requests[-_NEWEST_REQUESTS:]:
        text = " ".join(sentences("\n".join(message.texts("text"))))
        if not text:
            continue
        short = _opening(text)
        if short == text and message is not requests[0]:
            whole[len(entries)] = message.position
        entries.append(Item(text=f"{short} (#{message.position})", done=message.position < answered))
    lines: dict[int, str] = {}
    for number in sorted(range(len(entries)), key=lambda n: (entries[n]["done"], -n)):
        line = f"- [{'x' if entries[number]['done'] else ' '}] {entries[number]['text']}"
        room -= count(f"{line}\n")
        if room < 0:
            break
        lines[number] = line
    shown = frozenset(position for number, position in whole.items() if number in lines)
    return "\n".join(lines[number] for number in sorted(lines)), shown


def _updated(item: Item, answered: int) -> Item:
    reference = _REFERENCE.search(item["text"][-20:])
    done = item["done"] or (reference is not None and int(reference[1]) < answered)
    return Item(text=item["text"], done=done)


def _opening(text: str) -> str:
    """The text's first sentences, as many as an item holds."""
    if len(text) <= _ITEM_CHARS:
        return text
    out = ""
    for sentence in sentences(text[: 2 * _ITEM_CHARS]):
        if len(out) + len(sentence) >= _ITEM_CHARS:
            break
        out = f"{out} {sentence}".strip()
    return out or clip(text, _ITEM_CHARS, len)
