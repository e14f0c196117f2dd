"""Which sentences to keep when there is room for few: those that add most that is new and precise per token.

Greedy coverage: a sentence is worth the rarity (inverse sentence frequency) of its words, each worth less every time
it is already kept, times how informative the sentence looks, divided by its cost. No centrality: the sentences most
like all others are small talk.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .lexicon import FIRST_PERSON, QUESTION_ENDS, RELATIVE_TIME, SETTLED, TIME

REPEAT = 0.4  # what a word is still worth each time it is kept again
_EVALUATIONS = 30  # per sentence on average; after that stale worths are taken, which keeps hostile input linear

# What a sentence's words add to its worth of 1. Fitted on five LoCoMo conversations.
_PRECISE = re.compile(r"\w[_/\\]\w|[A-Za-z]\d|\d[A-Za-z]|\d{4}|\w-\d")  # identifiers, paths, long numbers
_KINDS = ((TIME, 1.5), (FIRST_PERSON, 0.5), (SETTLED, 0.5))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be kept: its words (`text.words`), its cost in the budget's unit, and how much it should
    count beside others."""

    words: Sequence[str]
    cost: int
    weight: float = 1.0


def informativeness(text: str, found: Sequence[str]) -> float:
    """How much a sentence, of these words, looks like it states something: numbers, names, time, who, what must be.
    Above 0; 1 for a plain one."""
    tokens = text.split()
    worth = 1.0
    worth += any(map(str.isdigit, text)) + bool(_PRECISE.search(text))
    worth += 0.5 * min(3, sum(t[0].isupper() and t[1:2].islower() for t in tokens[1:]))
    worth += sum(adds for kind, adds in _KINDS if not kind.isdisjoint(found))
    return worth / 2 if text.endswith(QUESTION_ENDS) else worth


def is_relative(found: Iterable[str]) -> bool:
    """Whether words speak of time so that they mean nothing without the day they were said on."""
    return not RELATIVE_TIME.isdisjoint(found)


def select(candidates: Sequence[Candidate], budget: int, seen: Iterable[str] = ()) -> list[int]:
    """Indices of the candidates to keep, ascending; their costs are within `budget`. `seen`: words kept elsewhere.

    Deterministic; about linear in the text."""
    found = [tuple(dict.fromkeys(candidate.words)) for candidate in candidates]
    frequency = Counter(word for one in found for word in one)
    total = len(candidates) + 1
    worth = {word: math.log(total / times) for word, times in frequency.items()}
    for word in seen:
        if word in worth:
            worth[word] *= REPEAT

    def gain(number: int) -> float:
        candidate = candidates[number]
        return -sum(worth[word] for word in found[number]) * candidate.weight / max(1, candidate.cost)

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
        for word in found[number]:
            worth[word] *= REPEAT
    return sorted(kept)
