"""Which nodes of a chain become one (semantics 7, Strategies). Pure: the caller runs the merges and writes them.

`sliding` keeps one rolling node, which replaces the one before; `hybrid` likewise, with a ledger of notes beside it
(summary/notes.py). `hierarchical` adds a node for each span and merges by level. Whatever the strategy, a chain over
its bound merges its oldest nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROLLING = frozenset({"sliding", "hybrid"})
NOTING = frozenset({"hybrid"})
MOST_LEAVES = 5  # level-0 nodes that stay apart: the sixth makes all six merge
MOST_INNER = 3  # nodes of any level above that stay apart: the fourth makes all four merge
MOST_MERGED = 4  # nodes that one merge for the chain's bound takes
MERGE_RATIO = 3  # a merged node aims at a third of its parts


@dataclass(frozen=True, slots=True)
class Link:
    """A node of the chain as merging sees it. `key` is the caller's."""

    key: str
    level: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Neighbouring nodes, by index from `start` to `end` (exclusive), that become one of `level`."""

    start: int
    end: int
    level: int


def rolls(strategy: str) -> bool:
    """Whether a new node replaces the active ones instead of joining them."""
    return strategy in ROLLING


def takes_notes(strategy: str) -> bool:
    """Whether notes of the span are taken before the summary, and the ledger of those before is carried on."""
    return strategy in NOTING


def next_merge(chain: Sequence[Link], *, strategy: str, chain_bound: int) -> Merge | None:
    """The next merge a chain needs, oldest node first in `chain`, or None when it stands.

    Levels first, the lowest first; then, while the chain is over `chain_bound` tokens, its oldest nodes. A single node
    never merges: its own bound keeps it within the chain's.
    """
    if not rolls(strategy):
        found = _by_level(chain)
        if found is not None:
            return found
    if len(chain) > 1 and sum(link.tokens for link in chain) > chain_bound:
        end = min(MOST_MERGED, len(chain))
        return Merge(0, end, max(link.level for link in chain[:end]) + 1)
    return None


def merge_target(tokens: Sequence[int], bound: int) -> int:
    """Tokens the merged node is asked to have."""
    return max(1, min(bound, sum(tokens) // MERGE_RATIO))


def _by_level(chain: Sequence[Link]) -> Merge | None:
    """The first run of one level that is too long. Levels never rise along a chain, so a level is one run."""
    start = 0
    while start < len(chain):
        level = chain[start].level
        end = start
        while end < len(chain) and chain[end].level == level:
            end += 1
        runs_over = end - start > (MOST_INNER if level else MOST_LEAVES)
        if runs_over and not _lower_runs_over(chain, end):
            return Merge(start, end, level + 1)
        start = end
    return None


def _lower_runs_over(chain: Sequence[Link], start: int) -> bool:
    """Whether a run after `start`, of a lower level, is too long as well: it merges first."""
    return start < len(chain) and _by_level(chain[start:]) is not None
