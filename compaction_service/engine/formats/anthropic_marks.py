"""`cache_control`: how many of these marks the API takes, in tools, system and messages together.

A client that moves its mark on with every turn has left one in each; the API refuses the fifth. What is cached before a
mark is found without it, so the newest are those that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction_service.engine.types import JSON

MOST = 4


def newest(turns: Sequence[JSON], beside: Iterable[JSON]) -> list[JSON]:
    """The turns, without the marks of the oldest of them where all are too many. `beside`: system and tools.

    A turn that loses none is passed on by reference; one keeps all of its marks or none.
    """
    left = MOST - sum(map(_count, beside))
    kept: list[JSON] = []
    for turn in reversed(turns):
        marks = _count(turn["content"])
        if marks > max(0, left):
            kept.append({**turn, "content": _without(turn["content"])})
        else:
            left -= marks
            kept.append(turn)
    return kept[::-1]


def _count(blocks: JSON) -> int:
    """Marks on these blocks or tools, and on the blocks in their results."""
    if not isinstance(blocks, list):
        return 0
    found = (block for block in blocks if isinstance(block, dict))
    return sum((block.get("cache_control") is not None) + _count(block.get("content")) for block in found)


def _without(blocks: JSON) -> JSON:
    if not isinstance(blocks, list):
        return blocks
    return [_unmarked(block) if isinstance(block, dict) else block for block in blocks]


def _unmarked(block: dict[str, JSON]) -> JSON:
    left = {key: value for key, value in block.items() if key != "cache_control"}
    return {**left, "content": _without(left["content"])} if "content" in left else left
