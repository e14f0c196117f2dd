"""Old tool results shown as placeholders, decided when messages are appended (semantics 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction_service.engine.policy import Policy
from compaction_service.engine.types import Entry


@dataclass(frozen=True, slots=True)
class Candidate:
    """A result that may be masked now."""

    position: int
    index: int  # into the message's answers
    saving: int  # raw tokens


def candidates(entries: Sequence[Entry], policy: Policy) -> list[Candidate]:
    """The results of the live tail (in order) that the policy allows to mask and that are not masked yet.

    Results count singly, however many a message holds. Pinned messages are shown verbatim, so never masked.
    """
    last_assistant = max((i for i, entry in enumerate(entries) if entry.facts.role == "assistant"), default=-1)
    total = sum(len(entry.facts.answers) for entry in entries)
    oldest = total - policy.keep_tool_results  # this many results are old enough
    preserved = frozenset(policy.preserve_tools)
    found: list[Candidate] = []
    number = 0
    for entry in entries[: last_assistant + 1]:  # what follows has not been seen
        for index, answer in enumerate(entry.facts.answers):
            number += 1
            if (
                number <= oldest
                and not entry.pinned
                and index not in entry.masked
                and answer.chars > policy.mask_min_chars
                and answer.saving > 0
                and answer.name not in preserved
            ):
                found.append(Candidate(entry.position, index, answer.saving))
    return found


def step(entries: Sequence[Entry], policy: Policy, over_limit: bool) -> dict[int, tuple[int, ...]]:
    """The answers to mask now, by position: all candidates once they save enough together, or else none.

    Fewer, larger steps keep the provider's prompt cache; a context over its limit does not wait.
    """
    if not policy.mask_tool_results:
        return {}
    found = candidates(entries, policy)
    if not over_limit and sum(one.saving for one in found) < policy.mask_min_reclaim_tokens:
        return {}
    masked: dict[int, list[int]] = {}
    for one in found:
        masked.setdefault(one.position, []).append(one.index)
    return {position: tuple(indices) for position, indices in masked.items()}
