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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .lexicon import FIRST_PERSON, QUESTION_ENDS, RELATIVE_TIME, SETTLED, TIME
from .text import words

REPEAT = 0.4  # what a word is still worth each time it is kept again
_NAME = 4.0  # how much more a name weighs than a plain word of its rarity
_NUMBER = 2.0
# What a sentence's words add to its worth of 1. These figures were fitted on five LoCoMo conversations.
_KINDS = ((TIME, 1.5), (FIRST_PERSON, 0.5), (SETTLED, 0.5))
_PRECISE = re.compile(r"\w[_/\\]\w|[A-Za-z]\d|\d[A-Za-z]|\d{4}|\w-\d")  # identifiers, paths, long numbers
_EVALUATIONS = 30  # per sentence on average; after that stale worths are taken, which keeps hostile input linear


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
    cost: int
    weight: float = 1.0


def traits(text: str) -> Traits:
    found = words(text)
    worth = 1.0 + bool(_PRECISE.search(text)) + sum(adds for kind, adds in _KINDS if not kind.isdisjoint(found))
    if text.endswith(QUESTION_ENDS):
        worth /= 2
    capitals = [
        word for token in text.split()[1:] if token[0].isupper() and token[1:2].islower() for word in words(token)
    ]
    return Traits(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(capitals)), worth)


def is_relative(sentence: Traits) -> bool:
    """Whether it speaks of time in words that mean nothing without the day they were said on."""
    return not RELATIVE_TIME.isdisjoint(sentence.words)


def select(candidates: Sequence[Candidate], budget: int, seen: Iterable[str] = ()) -> list[int]:
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
    while heap and budget > 0:
        stale, number = heapq.heappop(heap)
        if candidates[number].cost > budget:
            continue
        if evaluations > 0:
            evaluations -= 1
            fresh = gain(number)
            if heap and fresh > heap[0][0] and fresh > stale:
                heapq.heappush(heap, (fresh, number))
                continue
        kept.append(number)
        budget -= candidates[number].cost
        for word in candidates[number].traits.words:
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
