"""The hybrid strategy: notes taken before the summary, and carried word for word (semantics 7)."""

from __future__ import annotations

from typing import Any

from tests.inprocess import Service
from tests.model_server import Control

POLICY = {"strategy": "hybrid", "preserve_recent_turns": 1, "target": 0}
DECISION = "We decided to store invoices in PostgreSQL 16 under the schema billing_v2, and nowhere else."


def turn(number: int, extra: str = "") -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": f"{extra} "
            + f"Request {number}: mend src/module_{number}.py, it fails with error E{number}. " * 12,
        },
        {"role": "assistant", "content": f"I mended src/module_{number}.py: the cause was a missing value. " * 12},
    ]


def compact_rounds(service: Service, path: str, rounds: range, extra: str = "", **fields: Any) -> list[Any]:
    """Two turns and a compaction each; `extra` is said in the first."""
    made = []
    for number in rounds:
        service.append(path, *turn(2 * number, extra if number == rounds[0] else ""), *turn(2 * number + 1))
        made.append(service.compact(path, **fields))
        assert made[-1]["outcome"] == "applied", made[-1]
    return made


def chain(service: Service, path: str, state: str = "active") -> list[Any]:
    found = service.get(f"{path}/summaries?state={state}&limit=250")["data"]
    return sorted(found, key=lambda node: (node["from_position"], node["level"]))


def typed(entry: dict[str, Any], *states: str) -> list[dict[str, Any]]:
    return [one for one in entry["notes"] if one.get("state") in states]


def test_hybrid__model_writes__notes_are_a_pass_of_their_own_and_a_section_of_the_node(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    (made,) = compact_rounds(service, path, range(1), DECISION)

    assert [one["kind"] for one in made["passes"]] == ["notes", "summary"]
    assert [one["error"] for one in made["passes"]] == [None, None]
    assert (made["method"], len(service.calls(made["id"]))) == ("llm", 2)
    assert typed(made, "new") == [
        {"kind": "decision", "importance": 5, "text": DECISION, "positions": [1], "state": "new"}
    ]
    (node,) = chain(service, path)
    assert node["text"].endswith(f"## Notes\n- [decision !5 @1] {DECISION}")
    assert node["sections"][-1] == {"heading": "Notes", "text": f"- [decision !5 @1] {DECISION}"}
    assert DECISION in service.context(path)["messages"][0]["content"]


def test_hybrid__six_rounds__planted_decision_stays_word_for_word(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(6), DECISION)

    (node,) = chain(service, path)
    assert f"- [decision !5 @1] {DECISION}" in node["text"].splitlines()
    assert [one["text"] for one in typed(made[-1], "carried")] == [DECISION]
    assert all(one["method"] == "llm" for one in made)


def test_hybrid__no_model__decision_stays_word_for_word_all_the_same(service: Service) -> None:
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(6), DECISION)

    (node,) = chain(service, path)
    assert DECISION in node["text"].rpartition("## Notes")[2]
    assert [one["kind"] for one in made[-1]["passes"]] == ["notes", "summary"]
    assert (made[-1]["method"], service.calls(made[-1]["id"])) == ("extractive", [])
