"""The hybrid strategy: notes taken before the summary, and carried word for word (semantics 7)."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.tokens.messages import counter_for
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.integration.test_faults import assert_sound
from tests.model_server import Control

COUNTER = counter_for("o200k_base", 1.0)

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


def test_hybrid__correction__retires_what_it_corrects_and_the_log_says_so(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(1), DECISION)
    correction = "Correction: invoices go to MariaDB under the schema billing_v3."
    (made,) = compact_rounds(service, path, range(1, 2), correction)

    (node,) = chain(service, path)
    assert correction in node["text"]
    assert DECISION not in node["text"].rpartition("## Notes")[2]
    assert [one["text"] for one in typed(made, "replaced")] == [DECISION]


def test_hybrid__many_notes__node_is_within_its_bound_and_what_goes_is_told(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(context_window=16_000, policy={**POLICY, "summary_max_tokens": 400})
    prefers = " ".join(f"I prefer option_{n} over choice_{n} for the matter of case_{n}." for n in range(40))
    made = compact_rounds(service, path, range(3), f"{DECISION} {prefers}")

    (node,) = chain(service, path)
    assert COUNTER.text(node["text"]) <= 400
    ledger = typed(made[-1], "carried", "new")
    assert DECISION in [one["text"] for one in ledger]
    assert 2 <= len(ledger) < 15
    gone = [one["text"] for one in typed(made[0], "no_room")]
    assert len(gone) == 41 - len(typed(made[0], "new"))
    assert DECISION not in gone
    assert all(one["text"] in node["text"] for one in ledger)


def test_hybrid__summary_too_long__is_shortened_beside_its_notes(service: Service, models: Control, model: str) -> None:
    models.script(model, ["honest", "fixed_tokens:400", "fixed_tokens:120"])
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "summary_max_tokens": 300})
    (made,) = compact_rounds(service, path, range(1), DECISION)

    assert [one["kind"] for one in made["passes"]] == ["notes", "summary", "resummarize"]
    (node,) = chain(service, path)
    assert DECISION in node["text"]
    assert COUNTER.text(node["text"]) <= 300
    prompts = [call["body"]["messages"][1]["content"] for call in models.calls(model)]
    assert [DECISION in prompt.partition("<notes>\n")[2] for prompt in prompts] == [False, True, True]


def test_hybrid__model_reads_the_summary_before__without_the_notes_in_it(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(2), DECISION)

    *_, noting, summing = (str(call["body"]["messages"][1]["content"]) for call in models.calls(model))
    assert f"<notes>\n1. [decision !5 @1] {DECISION}\n</notes>" in noting
    previous, _, after = summing.partition("</previous_summary>")
    assert "## Overall Goal" in previous
    assert "## Notes" not in summing
    assert DECISION not in previous
    assert f"<notes>\n- [decision !5 @1] {DECISION}\n</notes>" in after


def test_hybrid__language_of_the_policy__is_not_that_of_the_notes(service: Service) -> None:
    path = service.create(policy={**POLICY, "language": "English"})
    decision = "Wir haben entschieden, Rechnungen nur in PostgreSQL zu speichern."
    compact_rounds(service, path, range(1), decision)

    (node,) = chain(service, path)
    assert f"] {decision}" in node["text"]


def test_hybrid__reverted__context_is_as_before(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(2), DECISION)
    service.append(path, *turn(8, "Correction: invoices go to MariaDB under billing_v3."), *turn(9))
    before = service.context(path)
    newest = service.compact(path)
    assert DECISION not in service.context(path)["messages"][0]["content"].rpartition("## Notes")[2]

    service.post(f"compactions/{newest['id']}/revert", status=200)

    after = service.context(path)
    assert (after["messages"], after["meter"]) == (before["messages"], before["meter"])
    # And on: the ledger is that of the node which is active again.
    again = service.compact(path)
    assert [one["text"] for one in typed(again, "replaced")] == [DECISION]


def test_strategies__one_after_another__notes_are_carried_dissolved_and_taken_anew(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(context_window=32_000, policy={**POLICY, "keep_last_user_request": False})

    def round_(number: int, strategy: str, extra: str = "") -> list[Any]:
        (made,) = compact_rounds(service, path, range(number, number + 1), extra, strategy=strategy)
        assert made["strategy"] == strategy
        assert_sound(service, path)
        return chain(service, path)

    (node,) = round_(0, "hybrid", DECISION)
    assert DECISION in node["text"]
    old, new = round_(1, "hierarchical")  # a node beside it, which stays as it is
    assert (old["text"], "## Notes" in new["text"]) == (node["text"], False)
    (node,) = round_(2, "hybrid", "I prefer amounts as cents.")  # one of both again
    notes = node["text"].rpartition("## Notes")[2]
    assert DECISION in notes
    assert "I prefer amounts as cents." in notes
    (node,) = round_(3, "sliding")  # takes in what they say
    assert "## Notes" not in node["text"]
    prompt = str(models.calls(model)[-1]["body"]["messages"][1]["content"])
    assert f"<previous_summary>\n- {DECISION}" in prompt
    (node,) = round_(4, "hybrid", "My name is Ada Lovelace.")  # and the ledger begins anew
    assert "My name is Ada Lovelace." in node["text"].rpartition("## Notes")[2]
    assert DECISION not in node["text"].rpartition("## Notes")[2]


def test_sliding_after_hybrid__no_model__notes_are_facts_of_the_summary(service: Service) -> None:
    path = service.create(policy=POLICY)
    compact_rounds(service, path, range(1), DECISION)
    compact_rounds(service, path, range(1, 2), strategy="sliding")

    (node,) = chain(service, path)
    assert DECISION in node["text"]
    assert "## Notes" not in node["text"]
    assert DECISION not in next(one["text"] for one in node["sections"] if one["heading"] == "Active Files")


@pytest.mark.parametrize("writes", [False, True])
def test_merge__nodes_with_ledgers__their_notes_are_one_ledger(
    service: Service, models: Control, model: str, writes: bool
) -> None:
    if writes:
        service.summarizer(models, model)
    path = service.create(context_window=32_000, policy={**POLICY, "keep_last_user_request": False})
    compact_rounds(service, path, range(1), DECISION)
    compact_rounds(service, path, range(1, 6), strategy="hierarchical")

    (node,) = chain(service, path)
    assert node["level"] == 1
    assert f"@1] {DECISION}" in node["text"].rpartition("## Notes")[2]
    assert sum(DECISION in one["text"] for one in chain(service, path, "merged")) == 1
    assert_sound(service, path)


def test_chain_bound__hierarchical_nodes_after_hybrid__stay_within_it_and_keep_the_notes(service: Service) -> None:
    policy = {**POLICY, "summary_chain_max_tokens": 450, "summary_max_tokens": 240, "keep_last_user_request": False}
    path = service.create(policy=policy)
    compact_rounds(service, path, range(1), DECISION)
    compact_rounds(service, path, range(1, 4), strategy="hierarchical")

    nodes = chain(service, path)
    assert sum(node["tokens"] for node in nodes) <= 450
    assert max(node["level"] for node in nodes) >= 1
    assert DECISION in nodes[0]["text"]


def test_fork__hybrid__carries_the_ledger_on(service: Service) -> None:
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(1), DECISION)[-1]
    fork = service.post(f"{path}/fork", {"position": made["to_position"] + 1})
    forked = f"conversations/{fork['id']}"
    compact_rounds(service, forked, range(1, 2))

    (node,) = chain(service, forked)
    assert DECISION in node["text"].rpartition("## Notes")[2]


def test_erase__message_of_a_note__takes_the_note_everywhere(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY)
    made = compact_rounds(service, path, range(2), DECISION)
    service.call("DELETE", f"{path}/messages/1", status=None)

    with tenant_scope(service.tenant_id):
        rows: list[Any] = [
            *Compaction.objects.filter(id__in=[one["id"] for one in made]).values(),
            *Pass.objects.filter(compaction_id__in=[one["id"] for one in made]).values(),
            *Summary.objects.filter(conversation_id=path.removeprefix("conversations/")).values(),
        ]
    assert "billing_v2" not in repr(rows)
    again = service.compact(path)
    assert (again["outcome"], typed(again, "new", "carried")) == ("applied", [])


def test_dry_run__hybrid__counts_the_calls_for_notes(service: Service) -> None:
    service.patch("tenant", {"summarizer": {"model": "gpt-4o-mini"}})
    path = service.create(policy=POLICY)
    service.append(path, *turn(0), *turn(1))

    def plan(strategy: str) -> Any:
        return service.post(f"{path}/compactions", {"dry_run": True, "strategy": strategy}, status=200)["plan"]

    one, two = plan("sliding"), plan("hybrid")
    assert (one["chunks"], two["chunks"]) == (1, 2)
    assert 1.5 * one["estimated_cost"] < two["estimated_cost"] <= 2 * one["estimated_cost"]
    assert {**one, **dict.fromkeys(("chunks", "estimated_cost"))} == {
        **two, **dict.fromkeys(("chunks", "estimated_cost"))
    }  # fmt: skip


def test_anthropic__hybrid__is_shown_the_same_way(service: Service) -> None:
    path = service.create(model="claude-sonnet-4-5", format="anthropic", policy=POLICY)
    compact_rounds(service, path, range(2), DECISION)

    assert f"] {DECISION}" in str(service.context(path)["messages"][0])
