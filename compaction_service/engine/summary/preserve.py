"""What a summariser is shown to keep word for word: the exact things that users said, and the summary before repeats
(semantics 7, Prompt). A model asked for prose rounds values off and drops names; over many rounds none would be left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .sections import item
from .span import Count, SpanMessage
from .terms import terms
from .text import sentences

SHARE = 2  # of the summary's length that they may have
_LONGEST = 240  # characters of one; more is no fact but a text
_LOOKED_AT = 20_000  # characters of one message: what follows was pasted


def facts(
    previous: str, messages: Sequence[SpanMessage], room: int, count: Count, *, known: str = ""
) -> tuple[str, ...]:
    """Sentences that hold a path, URL, identifier or number, within `room` tokens: of the summary before the first ones
    (two thirds of the room at most), of the messages those that hold most for their length, in order. Nothing of which
    `known`, a text that stays beside the summary, has all the names."""
    names = {term.text for term in terms(known)}
    old, spent = _chosen(_repeated(previous), room * 2 // 3, names, count, dense=False)
    new, _ = _chosen(_said(messages), room - spent, names, count, dense=True)
    return (*old, *new)


def _repeated(previous: str) -> Iterator[str]:
    """What a summary says, without headings, checklists (they change) and lists of names."""
    for line in previous.splitlines():
        said = line.strip()
        if said and not said.startswith("#") and not item(line):
            yield from sentences(said.lstrip("-*• "))


def _said(messages: Sequence[SpanMessage]) -> Iterator[str]:
    for message in messages:
        if message.request:
            for text in message.texts("text"):
                yield from sentences(text[:_LOOKED_AT])


def _chosen(found: Iterable[str], room: int, known: set[str], count: Count, *, dense: bool) -> tuple[list[str], int]:
    """The first or the densest that fit, and their tokens. `known` grows by what they hold: nothing is kept twice."""
    held = [
        (sentence, names)
        for sentence in dict.fromkeys(found)
        if len(sentence) <= _LONGEST and " " in sentence and (names := {term.text for term in terms(sentence)})
    ]
    best = list(range(len(held)))
    if dense:
        best.sort(key=lambda n: -len(held[n][1]) / (len(held[n][0]) + _LONGEST / 4))
    taken, spent = [], 0
    for number in best:
        sentence, names = held[number]
        if names <= known:
            continue
        tokens = count(sentence) + 3  # its mark and line break
        if spent + tokens > room:
            break
        known |= names
        taken.append(number)
        spent += tokens
    return [held[number][0] for number in sorted(taken)], spent
