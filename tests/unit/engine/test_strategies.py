"""Which nodes merge (semantics 7, Strategies)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine.strategies import Link, Merge, merge_target, next_merge, rolls, takes_notes


def chain(*levels: int, tokens: int = 10) -> list[Link]:
    return [Link(str(number), level, tokens) for number, level in enumerate(levels)]


def test_rolls__strategies__only_hierarchical_adds() -> None:
    assert [rolls(name) for name in ("sliding", "hierarchical", "hybrid")] == [True, False, True]


def test_takes_notes__strategies__only_hybrid() -> None:
    assert [takes_notes(name) for name in ("sliding", "hierarchical", "hybrid")] == [False, False, True]


def test_next_merge__five_leaves__stand() -> None:
    assert next_merge(chain(0, 0, 0, 0, 0), strategy="hierarchical", chain_bound=8192) is None


def test_next_merge__sixth_leaf__all_six_become_one_of_level_1() -> None:
    assert next_merge(chain(*[0] * 6), strategy="hierarchical", chain_bound=8192) == Merge(0, 6, 1)


def test_next_merge__leaves_after_inner_nodes__only_the_leaves() -> None:
    assert next_merge(chain(1, 1, *[0] * 6), strategy="hierarchical", chain_bound=8192) == Merge(2, 8, 1)


def test_next_merge__fourth_of_level_1__becomes_one_of_level_2() -> None:
    assert next_merge(chain(1, 1, 1, 1), strategy="hierarchical", chain_bound=8192) == Merge(0, 4, 2)


def test_next_merge__two_levels_too_long__the_lower_first() -> None:
    assert next_merge(chain(1, 1, 1, 1, *[0] * 6), strategy="hierarchical", chain_bound=8192) == Merge(4, 10, 1)


def test_next_merge__over_the_chain_bound__the_oldest_four() -> None:
    assert next_merge(chain(1, 0, 0, 0, 0, tokens=3000), strategy="hierarchical", chain_bound=8192) == Merge(0, 4, 2)


def test_next_merge__one_node_over_the_bound__stands() -> None:
    assert next_merge(chain(0, tokens=9000), strategy="sliding", chain_bound=8192) is None


def test_merge_target__parts__a_third_and_within_the_bound() -> None:
    assert (merge_target([300, 300, 300], 4096), merge_target([9000, 9000], 4096)) == (300, 4096)


@given(spans=st.integers(1, 200), tokens=st.integers(1, 4000), chain_bound=st.integers(64, 10_000))
def test_next_merge__any_number_of_spans__ends_with_a_short_chain_of_falling_levels(
    spans: int, tokens: int, chain_bound: int
) -> None:
    links: list[Link] = []
    for number in range(spans):
        links.append(Link(str(number), 0, tokens))
        steps = 0
        while merge := next_merge(links, strategy="hierarchical", chain_bound=chain_bound):
            part = links[merge.start : merge.end]
            merged = Link("m", merge.level, merge_target([link.tokens for link in part], 4096))
            links[merge.start : merge.end] = [merged]
            steps += 1
            assert steps < 50
        levels = [link.level for link in links]
        assert levels == sorted(levels, reverse=True)
        assert levels.count(0) <= 5
        assert len(links) == 1 or sum(link.tokens for link in links) <= chain_bound
