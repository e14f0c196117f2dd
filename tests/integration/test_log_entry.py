"""A log entry and a node of the chain, field by field against what is known from elsewhere (semantics 10)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.model_server import Control
from tests.unit.docs.pages import ROOT

COUNTER = counter_for("o200k_base", 1.0)
ANSWER = (
    "## Overall Goal\nMend src/module_1.py; Grace Hopper waits. Nothing of made_up_name.\n\n"
    "## Next Steps\n- [x] E11 read\n"
    "- [ ] mend it\n\n## Active Files\n- src/module_1.py\n- src/never_was.py"
)
ENTRY = {
    "id", "conversation", "status", "outcome", "reason", "trigger", "requested_by", "strategy", "policy", "focus",
    "instructions", "from_position", "to_position", "from_turn", "to_turn", "model", "method", "fallback_reason",
    "context_before", "context_after", "tokens_in", "tokens_out", "compression_ratio", "target_reached", "summary",
    "sections", "dropped_content", "entities", "notes", "passes", "llm_tokens_in", "llm_tokens_out", "cost",
    "queued_ms", "duration_ms", "review", "created_at", "started_at", "finished_at",
}  # fmt: skip
PASS = {
    "kind",
    "number",
    "model",
    "tokens_in",
    "tokens_out",
    "cost",
    "status",
    "error",
    "started_at",
    "duration_ms",
}
NODE = {
    "id", "conversation", "compaction", "level", "from_position", "to_position", "from_turn", "to_turn", "text",
    "sections", "tokens", "method", "parent", "children", "entities", "state", "created_at",
}  # fmt: skip


def turn(number: int, at: str | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    ask = f"Request {number}: mend src/module_{number}.py, it fails with E{number}1 since yesterday. Ask Grace Hopper. "
    did = f"I read src/module_{number}.py and test_{number} in step {number}. "
    messages = [{"role": "user", "content": ask * 8}, {"role": "assistant", "content": did * 12}]
    return messages, [{"occurred_at": at} if at else {}] * 2


def compacted(service: Service, models: Control, model: str) -> tuple[str, Any, Any, Any]:
    """A conversation, its context before, the entry of a compaction by a model, and the context after."""
    service.summarizer(models, models.script(model, f"say:{ANSWER}"))
    path = service.create(policy={"target": 0, "preserve_recent_turns": 1, "keep_last_user_request": False})
    for number in range(1, 5):
        messages, details = turn(number, "2021-03-04T23:30:00-05:00" if number == 1 else None)
        service.append(path, *messages, details=details)
    before = service.context(path)
    entry = service.compact(path, focus="the modules", instructions="Be terse.")
    return path, before, entry, service.context(path)


def seconds(early: str, late: str) -> float:
    return (datetime.fromisoformat(late) - datetime.fromisoformat(early)).total_seconds()


def test_entry__applied_by_a_model__every_field_is_what_happened(service: Service, models: Control, model: str) -> None:
    path, before, entry, after = compacted(service, models, model)
    conversation = service.get(path)
    assert set(entry) >= ENTRY
    assert entry["conversation"] == conversation["id"]
    assert (entry["status"], entry["outcome"], entry["reason"]) == ("succeeded", "applied", None)
    assert (entry["trigger"], entry["requested_by"]) == ("manual", "key:full")  # the key's name
    assert (entry["strategy"], entry["policy"]) == ("sliding", conversation["policy"])
    assert (entry["focus"], entry["instructions"]) == ("the modules", "Be terse.")
    assert [entry[name] for name in ("from_position", "to_position", "from_turn", "to_turn")] == [1, 6, 1, 3]
    assert (entry["model"], entry["method"], entry["fallback_reason"]) == (model, "llm", None)
    for side, context in (("context_before", before), ("context_after", after)):
        assert entry[side] == {"tokens": context["meter"]["tokens"], "breakdown": context["meter"]["breakdown"]}
    assert entry["tokens_in"] == sum(COUNTER.message("openai", one) for one in before["messages"][:6])
    assert entry["tokens_out"] == after["meter"]["breakdown"]["summaries"]
    assert entry["compression_ratio"] == round(entry["tokens_in"] / entry["tokens_out"], 2)
    assert entry["target_reached"] is True
    assert "src/never_was.py" not in entry["summary"]
    assert [one["heading"] for one in entry["sections"]] == ["Overall Goal", "Next Steps", "Active Files"]
    assert entry["sections"][1]["items"] == [{"text": "E11 read", "done": True}, {"text": "mend it", "done": False}]
    assert entry["sections"][2]["text"] == "- src/module_1.py"
    assert entry["review"] == "unreviewed"


def test_entry__what_was_dropped_and_kept__by_position(service: Service, models: Control, model: str) -> None:
    _, _, entry, _ = compacted(service, models, model)
    dropped = {(one["position"], one["kind"], one["text"]) for one in entry["dropped_content"]}
    assert {(position, kind) for position, kind, _ in dropped if kind == "request"} == {(3, "request"), (5, "request")}
    assert {(3, "identifier", "src/module_2.py"), (5, "identifier", "E31"), (6, "identifier", "test_3")} <= dropped
    assert not any(text in ("src/module_1.py", "E11") for _, _, text in dropped)
    assert {"src/module_1.py", "Grace Hopper", "E11"} <= set(entry["entities"])
    assert not {"made_up_name", "src/never_was.py"} & set(entry["entities"])
    assert entry["notes"] == [{"invented_files": ["src/never_was.py"]}]


def test_entry__passes_costs_and_times__are_those_of_the_ledger_and_the_clock(
    service: Service, models: Control, model: str
) -> None:
    _, _, entry, _ = compacted(service, models, model)
    (call,) = service.calls(entry["id"])
    (one,) = entry["passes"]
    assert set(one) >= PASS
    assert (one["kind"], one["number"], one["model"], one["status"], one["error"]) == (
        "summary", 1, model, "succeeded", None,
    )  # fmt: skip
    assert (one["tokens_in"], one["tokens_out"]) == (call.tokens_in, call.tokens_out)
    assert (entry["llm_tokens_in"], entry["llm_tokens_out"]) == (call.tokens_in, call.tokens_out)
    assert Decimal(str(entry["cost"])) == (call.cost or 0)
    assert (one["from_position"], one["to_position"]) == (1, 6)
    assert one["duration_ms"] >= call.duration_ms > 0
    for begin, end, told in (("created_at", "started_at", "queued_ms"), ("started_at", "finished_at", "duration_ms")):
        assert abs(seconds(entry[begin], entry[end]) * 1000 - entry[told]) <= 1
    assert entry["created_at"] <= entry["started_at"] <= entry["finished_at"]


def test_entry__failed_calls__are_in_its_sums_and_last_some_time(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, models.script(model, ["status:500", "status:500", "refusal"]))
    path = service.create(policy={"target": 0})
    for number in range(1, 5):
        service.append(path, *turn(number)[0])
    entry = service.compact(path)
    calls = service.calls(entry["id"])
    assert [(call.status, call.error) for call in calls] == [
        ("failed", "server_error"), ("failed", "server_error"), ("failed", "refusal"),
    ]  # fmt: skip
    assert all(call.duration_ms > 0 for call in calls)
    assert entry["llm_tokens_in"] == calls[-1].tokens_in > 0


def test_node__every_field_is_that_of_its_compaction(service: Service, models: Control, model: str) -> None:
    path, _, entry, after = compacted(service, models, model)
    (node,) = service.get(f"{path}/summaries")["data"]
    assert set(node) >= NODE
    assert node == service.get(f"summaries/{node['id']}")
    same = ("from_position", "to_position", "from_turn", "to_turn", "method", "entities", "sections", "conversation")
    assert [node[name] for name in same] == [entry[name] for name in same]
    assert (node["compaction"], node["level"], node["state"]) == (entry["id"], 0, "active")
    assert (node["text"], node["tokens"]) == (entry["summary"], entry["tokens_out"])
    assert (node["parent"], node["children"]) == (None, [])
    assert node["text"] in after["messages"][0]["content"]
    assert after["summaries"] == [node["id"]]
    originals = service.get(f"summaries/{node['id']}/messages?limit=100")["data"]
    assert [one["position"] for one in originals] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("status=succeeded", True), ("status=failed", False), ("outcome=applied", True), ("outcome=stale", False),
        ("trigger=manual", True), ("trigger=threshold", False), ("position=6", True), ("position=7", False),
        ("entity=Grace Hopper", True), ("entity=made_up_name", False), ("q=waits", True), ("q=nobody", False),
        ("created_after=2000-01-01T00:00:00Z", True), ("created_before=2000-01-01T00:00:00Z", False),
    ],
)  # fmt: skip
def test_queries__each_by_itself__finds_the_entry_or_not(
    service: Service, models: Control, model: str, query: str, finds: bool
) -> None:
    name, _, value = query.partition("=")
    path, _, entry, _ = compacted(service, models, model)
    found = service.get(f"compactions?conversation={path.removeprefix('conversations/')}&{name}={quote(value)}")["data"]
    assert [one["id"] for one in found] == ([entry["id"]] if finds else [])


def test_prompt__times__are_when_messages_occurred_else_when_they_were_stored(
    service: Service, models: Control, model: str
) -> None:
    path, *_ = compacted(service, models, model)
    system, user = (one["content"] for one in models.calls(model)[0]["body"]["messages"])
    assert "Turn relative dates into absolute ones with the times told." in system
    assert "<time 2021-03-05T04:30Z>\n<1 user> " in user
    stored = service.get(f"{path}/messages?from=3&to=3")["data"][0]["created_at"][:16]
    assert f"<time {stored}Z>\n<3 user> " in user


def test_extractive__relative_date__bears_the_day_it_was_said_on(service: Service) -> None:
    path = service.create(policy={"target": 0})
    for number in range(1, 5):
        messages, details = turn(number, f"2021-03-0{number}T23:30:00-05:00")
        service.append(path, *messages, details=details)
    assert "[2021-03-02] Request 1" in service.compact(path)["summary"]


def test_page_of_the_api__names_every_field(service: Service) -> None:
    document = (ROOT / "compaction_service/openapi.yaml").read_text(encoding="utf-8")
    for name in (*ENTRY, *PASS, *NODE):
        assert f"        {name}:\n" in document, name
