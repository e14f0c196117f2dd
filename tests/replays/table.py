"""What replays came to, as a table for people."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.replays.playing import Seen, Way

COLUMNS = (
    "transcripts", "messages", "appends", "contexts", "applied", "skipped", "irreducible", "degraded", "overflow",
    "problems",
)  # fmt: skip
Key = tuple[str, str, int]  # source, policy, window


@dataclass
class Table:
    rows: dict[Key, Tally[str]] = field(default_factory=dict)

    def add(self, source: str, way: Way, seen: Seen) -> None:
        self.rows.setdefault((source, way.policy, way.window), Tally()).update(seen.counts)

    def lines(self) -> Iterator[str]:
        """By source, then by policy and window, then all."""
        yield _line("", COLUMNS)
        yield from self._by(lambda key: key[0])
        yield from self._by(lambda key: f"{key[1]} {key[2]:,}")
        yield from self._by(lambda _: "all")

    def _by(self, name: Callable[[Key], str]) -> Iterator[str]:
        sums: dict[str, Tally[str]] = {}
        for key, counts in self.rows.items():
            sums.setdefault(name(key), Tally()).update(counts)
        for title, counts in sorted(sums.items()):
            yield _line(title, [f"{counts[column]:,}" for column in COLUMNS])


def _line(title: str, cells: tuple[str, ...] | list[str]) -> str:
    return f"{title:<34}" + "".join(f"{cell:>12}" for cell in cells)
