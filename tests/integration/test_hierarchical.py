"""The hierarchical strategy: levels, merges before the apply, one apply for all (semantics 7)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from compaction_service.compactions.models import NodeState
from tests.inprocess import Service
from tests.model_server import Control

POLICY = {"strategy": "hierarchical", "preserve_recent_turns": 1, "target": 0}


def turn(number: int) -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": f"Request {number}: mend src/module_{number}.py, it fails with error E{number}. " * 12,
        },
        {"role": "assistant", "content": f"I mended src/module_{number}.py: the cause was a missing value. " * 12},
    ]


def compact_rounds(service: Service, path: str, rounds: range) -> list[Any]:
    made = []
    for number in rounds:
        service.append(path, *turn(2 * number), *turn(2 * number + 1))
        made.append(service.compact(path))
        assert made[-1]["outcome"] == "applied", made[-1]
    return made


def chain(service: Service, path: str, state: str = "active") -> list[Any]:
    found = service.get(f"{path}/summaries?state={state}&limit=250")["data"]
    return sorted(found, key=lambda node: (node["from_position"], node["level"]))


def test_hierarchical__five_spans__are_five_nodes_shown_oldest_first(service: Service) -> None:
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(5))

    nodes = chain(service, path)
    assert [node["level"] for node in nodes] == [0] * 5
    assert service.context(path)["summaries"] == [node["id"] for node in nodes]
    assert nodes[0]["from_position"] == 1
    assert all(one["to_position"] + 1 == two["from_position"] for one, two in pairwise(nodes))


def test_hierarchical__sixth_span__merges_all_six_in_one_apply(service: Service) -> None:
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(6))

    (node,) = chain(service, path)
    merged = chain(service, path, NodeState.MERGED)
    assert (node["level"], node["from_position"], node["to_position"]) == (1, 1, made[-1]["to_position"])
    assert node["children"] == [one["id"] for one in merged]
    assert {one["parent"] for one in merged} == {node["id"]}
    assert len(merged) == 6
    assert all(one["text"] for one in merged)
    assert [one["kind"] for one in made[-1]["passes"]] == ["summary", "merge"]
    assert made[-1]["context_after"]["tokens"] < made[-1]["context_before"]["tokens"]


def test_hierarchical__model_writes__merges_are_calls_of_their_own(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(6))

    assert made[-1]["method"] == "llm", made[-1]["fallback_reason"]
    assert [one["model"] for one in made[-1]["passes"]] == [model, model]
    assert len(service.calls(made[-1]["id"])) == 2


def test_hierarchical__merge_reverted__six_nodes_as_before(service: Service) -> None:
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(5))
    service.append(path, *turn(10), *turn(11))
    before = service.context(path)
    newest = service.compact(path)
    assert [node["level"] for node in chain(service, path)] == [1]

    service.post(f"compactions/{newest['id']}/revert", status=200)

    after = service.context(path)
    assert [node["level"] for node in chain(service, path)] == [0] * 5
    assert after["messages"] == before["messages"]
    assert after["meter"] == before["meter"]


def test_hierarchical__chain_over_its_bound__oldest_nodes_merge(service: Service) -> None:
    path = service.create(policy={**POLICY, "summary_chain_max_tokens": 400, "summary_max_tokens": 200})
    compact_rounds(service, path, range(4))

    nodes = chain(service, path)
    assert max(node["level"] for node in nodes) >= 1
    assert sum(node["tokens"] for node in nodes) <= 400
