"""Which tool results a masking step takes (semantics 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine import masking
from compaction_service.engine.policy import Policy
from compaction_service.engine.types import Answer, Call, Entry, Facts


def result(*, chars: int = 1000, saving: int = 200, name: str | None = "bash", count: int = 1) -> Facts:
    return Facts("tool", answers=tuple(Answer(f"c{i}", name, chars, saving, chars) for i in range(count)))


USER = Facts("user", request=True)
CALLING = Facts("assistant", calls=(Call("c0", "bash"),))
SAID = Facts("assistant")


def tail(*facts: Facts, first: int = 1) -> list[Entry]:
    return [Entry(position, one, tokens=300, chars=1200) for position, one in enumerate(facts, first)]


def rules(**changes: Any) -> Policy:
    return replace(Policy(keep_tool_results=0, mask_min_reclaim_tokens=0), **changes)


def test_step__newest_results__are_kept_counting_results_not_messages() -> None:
    entries = tail(CALLING, result(), CALLING, result(count=3), SAID, first=11)

    assert masking.step(entries, rules(keep_tool_results=2), over_limit=False) == {12: (0,), 14: (0,)}


def test_step__result_nobody_has_seen__is_not_masked() -> None:
    entries = tail(CALLING, result(), CALLING, result(), USER)

    assert masking.step(entries, rules(), over_limit=True) == {2: (0,)}


@pytest.mark.parametrize(
    ("facts", "changes"),
    [
        (result(chars=100), {}),
        (result(saving=0), {}),
        (result(saving=-3), {}),
        (result(name="read_file"), {}),
        (result(), {"mask_tool_results": False}),
        (result(), {"keep_tool_results": 1}),
        (result(), {"preserve_tools": ("bash",)}),
    ],
)
def test_step__result_the_policy_protects__is_not_masked(facts: Facts, changes: dict[str, Any]) -> None:
    assert masking.step(tail(CALLING, facts, SAID), rules(**changes), over_limit=True) == {}


def test_step__result_just_longer_than_the_minimum__is_masked() -> None:
    assert masking.step(tail(CALLING, result(chars=101), SAID), rules(), over_limit=False) == {2: (0,)}


def test_step__pinned_result__is_not_masked() -> None:
    entries = [replace(entry, pinned=entry.position == 2) for entry in tail(CALLING, result(), SAID)]

    assert masking.step(entries, rules(), over_limit=True) == {}


def test_step__masked_already__is_not_given_again() -> None:
    entries = tail(CALLING, result(count=2), SAID)
    entries[1] = replace(entries[1], masked=(0,))

    assert masking.step(entries, rules(), over_limit=False) == {2: (1,)}


@pytest.mark.parametrize(
    ("reclaim", "over_limit", "masked"), [(400, False, True), (401, False, False), (401, True, True), (0, False, True)]
)
def test_step__less_than_a_step_to_reclaim__waits_unless_over_the_limit(
    reclaim: int, over_limit: bool, masked: bool
) -> None:
    entries = tail(CALLING, result(), CALLING, result(), SAID)

    found = masking.step(entries, rules(mask_min_reclaim_tokens=reclaim), over_limit=over_limit)

    assert found == ({2: (0,), 4: (0,)} if masked else {})


FACTS = st.lists(
    st.sampled_from([USER, SAID, CALLING])
    | st.builds(
        result,
        chars=st.integers(0, 300),
        saving=st.integers(-5, 300),
        name=st.sampled_from(["bash", "read_file"]),
        count=st.integers(1, 4),
    ),
    max_size=30,
)


@given(FACTS, st.integers(0, 6), st.integers(0, 500), st.booleans())
def test_step__any_tail__takes_only_seen_old_results_and_nothing_twice(
    facts: list[Facts], keep: int, reclaim: int, over_limit: bool
) -> None:
    entries = tail(*facts)
    policy = Policy(keep_tool_results=keep, mask_min_reclaim_tokens=reclaim)

    found = masking.step(entries, policy, over_limit)

    results = [(entry.position, i) for entry in entries for i in range(len(entry.facts.answers))]
    taken = [(position, i) for position, indices in found.items() for i in indices]
    assert set(taken) <= set(results[: len(results) - keep] if len(results) > keep else [])
    assert all(any(later.role == "assistant" for later in facts[position:]) for position in found)
    after = [replace(entry, masked=found.get(entry.position, ())) for entry in entries]
    assert masking.candidates(after, policy) == [] or not found
    if found and not over_limit:
        assert sum(entry.shown_tokens for entry in entries) - sum(entry.shown_tokens for entry in after) >= reclaim
