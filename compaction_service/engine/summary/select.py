"""Which sentences to keep when there is room for few: those that add most that is new and precise per token.

Greedy coverage: a sentence is worth the rarity (inverse sentence frequency) of its words, names and numbers more than
others, each word less every time it is already kept; times how much the sentence looks like it states something;
divided by its cost. No centrality: the sentences most like all others are small talk.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from .lexicon import (
    ACKNOWLEDGED,
    FIRST_PERSON,
    GREETING,
    NEWS,
    PLAIN,
    PLEASANT,
    QUESTION_ENDS,
    RELATIVE_TIME,
    SECOND_PERSON,
    SETTLED,
    TIME,
)
from .text import words

REPEAT = 0.4  # what a word is still worth each time it is kept again
_NAME = 4.0  # how much more a name weighs than a plain word of its rarity
_NUMBER = 2.0
_PRECISE = re.compile(r"\w[_/\\]\w|[A-Za-z]\d|\d[A-Za-z]|\d{4}|\w-\d")  # identifiers, paths, long numbers
_QUOTED = re.compile('["\u201c\u201e\u300c\u300e\xab`]')
_LISTED = re.compile("[,\uff0c\u060c\u3001][^,\uff0c\u060c\u3001]{2,60}[,\uff0c\u060c\u3001]")
_FIGURE = re.compile(r"\d")
_SIGN = re.compile(r"[{}\[\]<>=|;()_#*\\^~+&$@]")
_NUMBERED = re.compile(r"\d+[:|\t\u2192]\s")  # a line of a listing
_SIGNS = 0.08  # of a text's characters; more, and it is no prose
_FEW = 4  # words
_LONG_GREETING = 200  # characters; a longer text says something
_EVALUATIONS = 30  # per sentence on average; after that stale worths are taken, which keeps hostile input linear


# How much more a sentence is worth of which this holds, and how much less. Fitted on five LoCoMo conversations.
_Holds = Callable[[str, Sequence[str]], bool]
_FACTORS: tuple[tuple[_Holds, float], ...] = (
    (lambda text, _: bool(_PRECISE.search(text)), 2.0),
    (lambda _, found: not TIME.isdisjoint(found), 1.5),
    (lambda _, found: not RELATIVE_TIME.isdisjoint(found), 1.8),
    (lambda _, found: not NEWS.isdisjoint(found), 1.4),
    (lambda _, found: not SETTLED.isdisjoint(found), 1.5),
    (lambda _, found: not FIRST_PERSON.isdisjoint(found[:1]), 1.4),
    (lambda _, found: not SECOND_PERSON.isdisjoint(found[:1]), 0.4),
    (lambda text, _: text.endswith(QUESTION_ENDS), 0.3),
    (lambda _, found: len(found) <= _FEW, 0.4),
    (lambda _, found: _is_kind(found), 0.1),
    (lambda text, _: bool(_LISTED.search(text)), 1.8),
    (lambda text, _: bool(_QUOTED.search(text)), 1.6),
    (lambda text, _: bool(_FIGURE.search(text)), 1.8),
    # Code, tables, listings: what they are about is said in sentences.
    (lambda text, _: len(_SIGN.findall(text)) > _SIGNS * len(text) or bool(_NUMBERED.match(text)), 0.4),
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What selection knows of a sentence: its distinct words, those capitalised inside it, and how much it looks
    like it states something (above 0; 1 for a plain statement)."""

    words: tuple[str, ...]
    capitals: tuple[str, ...]
    worth: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be kept: its cost in the budget's unit, and how much it should count beside others."""

    traits: Traits
    cost: float
    weight: float = 1.0
    group: Hashable = None  # the first kept of a group pays its opening too
    opening: int = 0


def traits(text: str) -> Traits:
    found = words(text)
    worth = math.prod(factor for holds, factor in _FACTORS if holds(text, found))
    capitals = [
        word for token in text.split()[1:] if token[0].isupper() and token[1:2].islower() for word in words(token)
    ]
    return Traits(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(capitals)), worth)


def is_relative(sentence: Traits) -> bool:
    """Whether it speaks of time in words that mean nothing without the day they were said on."""
    return not RELATIVE_TIME.isdisjoint(sentence.words)


def only_greets(text: str) -> bool:
    """Or thanks. Other kind words are kept where there is room for them."""
    if len(text) > _LONG_GREETING:
        return False
    found = words(text)
    return not GREETING.isdisjoint(found) and _is_kind(found)


def only_acknowledges(text: str) -> bool:
    """Or greets: what an agent says where it has nothing to say. Of a user it may be the answer to a question."""
    found = words(text) if len(text) <= _LONG_GREETING else []
    acknowledged = not ACKNOWLEDGED.isdisjoint(found)
    return acknowledged and all(word in ACKNOWLEDGED or word in PLEASANT or word in PLAIN for word in found)


def _is_kind(found: Sequence[str]) -> bool:
    return not PLEASANT.isdisjoint(found) and all(word in PLEASANT or word in PLAIN for word in found)


def select(candidates: Sequence[Candidate], budget: float, seen: Iterable[str] = ()) -> list[int]:
    """Indices of the candidates to keep, ascending; their costs are within `budget`. `seen`: words kept elsewhere.

    Deterministic; about linear in the text."""
    worth = _worths([candidate.traits for candidate in candidates])
    for word in seen:
        if word in worth:
            worth[word] *= REPEAT

    def gain(number: int) -> float:
        one = candidates[number]
        return -sum(worth[word] for word in one.traits.words) * one.traits.worth * one.weight / max(1, one.cost)

    heap = [(gain(number), number) for number in range(len(candidates))]
    heapq.heapify(heap)
    kept = []
    evaluations = _EVALUATIONS * len(candidates)
    opened: set[Hashable] = {None}
    while heap and budget > 0:
        stale, number = heapq.heappop(heap)
        one = candidates[number]
        price = one.cost if one.group in opened else one.cost + one.opening
        if price > budget:
            continue
        if evaluations > 0:
            evaluations -= 1
            fresh = gain(number)
            if heap and fresh > heap[0][0] and fresh > stale:
                heapq.heappush(heap, (fresh, number))
                continue
        kept.append(number)
        budget -= price
        opened.add(one.group)
        for word in one.traits.words:
            worth[word] *= REPEAT
    return sorted(kept)


def _worths(sentences: Sequence[Traits]) -> dict[str, float]:
    """Each word's rarity; more for numbers, and for what is mostly capitalised where a plain word would not be."""
    frequency = Counter(word for one in sentences for word in one.words)
    capital = Counter(word for one in sentences for word in one.capitals)
    total = len(sentences) + 1
    worth = {}
    for word, times in frequency.items():
        factor = _NUMBER if word.isdecimal() else _NAME if 2 * capital[word] >= times else 1.0
        worth[word] = math.log(total / times) * factor
    return worth
