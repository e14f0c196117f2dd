"""The sentences a summary may have, and those that it keeps so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .bullets import cost, group, opening
from .gather import Sentence
from .select import Candidate, select
from .span import Count


class Pool:
    """Numbers are places in `found`. What is said twice is there once, as a user's words where it is a user's."""

    def __init__(self, found: Sequence[Sentence], count: Count) -> None:
        self.found = found
        self._candidates = [
            Candidate(one.traits, cost(one, count), one.weight, group(one), count(opening(one))) for one in found
        ]
        self._kept: set[int] = set()
        first: dict[str, int] = {}
        for number in sorted(range(len(found)), key=lambda number: not found[number].asked):
            first.setdefault(found[number].text, number)
        self._distinct = sorted(first.values())

    @property
    def kept(self) -> list[Sentence]:
        return [self.found[number] for number in sorted(self._kept)]

    @property
    def spent(self) -> float:
        """Tokens of what is kept."""
        return self.cost(self._kept)

    def those(self, wanted: Callable[[Sentence], bool]) -> list[int]:
        return [number for number in self._distinct if wanted(self.found[number])]

    def kept_of(self, numbers: Iterable[int]) -> list[int]:
        return [number for number in numbers if number in self._kept]

    def cost(self, numbers: Iterable[int]) -> float:
        return sum(self._candidates[number].cost for number in numbers)

    def keep(self, numbers: Sequence[int], room: float) -> float:
        """Keep all of these, or those that add most where `room` is too small for all. Gives the tokens they take."""
        new = [number for number in numbers if number not in self._kept]
        if (all_of_them := self.cost(new)) > room:
            seen = (word for number in self._kept for word in self.found[number].traits.words)
            new = [new[place] for place in select([self._candidates[number] for number in new], room, seen)]
            all_of_them = self.cost(new)
        self._kept.update(new)
        return all_of_them
