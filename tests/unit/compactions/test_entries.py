from __future__ import annotations

from typing import Any

import pytest

from compaction_service.compactions import jobs
from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.usage.models import Call
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.model_server import Control

SECRET = "zanzibar"  # a word of the transcript, the focus and the instructions
CHAT = [
    {"role": role, "content": " ".join(f"{SECRET}_{turn} step {n} changed src/module_{n}.py" for n in range(200))}
    for turn, role in enumerate(("user", "assistant", "user", "assistant"))
]
TOLD_BY_SILENT = {
    "id", "conversation", "status", "outcome", "trigger", "context_before", "context_after", "tokens_in", "tokens_out",
    "compression_ratio", "llm_tokens_in", "llm_tokens_out", "queued_ms", "duration_ms", "review", "created_at",
    "started_at", "finished_at",
}  # fmt: skip


def compacted(service: Service, models: Control, model: str, transparency: str, **policy: Any) -> tuple[str, Any]:
    """A conversation of this transparency after a compaction by a model, and its log entry."""
    service.summarizer(models, model)
    path = service.create(context_window=32_000, policy={"transparency": transparency, **policy})
    service.append(path, *CHAT)
    return path, service.compact(path, focus=SECRET, instructions=f"keep {SECRET}")


def stored(service: Service, compaction_id: str) -> str:
    """All columns of the entry and of its passes, as text."""
    with tenant_scope(service.tenant_id):
        rows = [
            *Compaction.objects.filter(id=compaction_id).values(),
            *Pass.objects.filter(compaction_id=compaction_id).values(),
        ]
    return repr(rows)


def test_transparency__full__tells_and_keeps_all(service: Service, models: Control, model: str) -> None:
    _, entry = compacted(service, models, model, "full")
    assert (entry["outcome"], entry["focus"], entry["instructions"]) == ("applied", SECRET, f"keep {SECRET}")
    assert entry["summary"]
    assert entry["dropped_content"]
    with tenant_scope(service.tenant_id):
        assert all(Pass.objects.filter(compaction_id=entry["id"]).values_list("output", flat=True))


def test_transparency__summary__stores_neither_dropped_content_nor_notes_nor_drafts(
    service: Service, models: Control, model: str
) -> None:
    _, entry = compacted(service, models, model, "summary")
    assert (entry["outcome"], entry["dropped_content"], entry["notes"]) == ("applied", [], [])
    assert entry["summary"]
    assert entry["focus"] == SECRET
    assert [one["kind"] for one in entry["passes"]] == ["summary"]
    with tenant_scope(service.tenant_id):
        assert list(Pass.objects.filter(compaction_id=entry["id"]).values_list("output", flat=True)) == [""]


def test_transparency__silent__stores_numbers_and_times_only(service: Service, models: Control, model: str) -> None:
    path, entry = compacted(service, models, model, "silent", instructions=f"always {SECRET}")
    assert entry["outcome"] == "applied"
    assert {name for name, value in entry.items() if value not in (None, [], {}, "")} == TOLD_BY_SILENT
    assert SECRET not in stored(service, entry["id"])
    assert model not in stored(service, entry["id"])
    [node] = service.get(f"{path}/summaries")["data"]
    assert node["text"] in repr(service.context(path)["messages"]).replace("\\n", "\n")
    assert (node["state"], node["compaction"]) == ("active", entry["id"])


def test_transparency__silent_entry__is_counted_and_can_be_reverted(
    service: Service, models: Control, model: str
) -> None:
    path, entry = compacted(service, models, model, "silent")
    with tenant_scope(service.tenant_id):
        spent = sum(call.tokens_in for call in Call.objects.filter(compaction_id=entry["id"]))
    stats = service.get(f"{path}/stats")
    assert (stats["outcomes"]["applied"], stats["tokens_out"], stats["entities"]) == (1, entry["tokens_out"], [])
    assert stats["llm_tokens_in"] == entry["llm_tokens_in"] == spent > 0
    assert service.post(f"compactions/{entry['id']}/revert", status=200)["reverted_at"]
    assert len(service.context(path)["messages"]) == len(CHAT)


def test_transparency__changed_after_the_entry__leaves_it_as_it_was_written(
    service: Service, models: Control, model: str
) -> None:
    path, entry = compacted(service, models, model, "full")
    service.patch(path, {"policy": {"transparency": "silent"}})
    assert service.get(f"compactions/{entry['id']}") == entry


@pytest.mark.parametrize("end", ["irreducible", "cancelled"])
def test_transparency__silent_end_without_a_summary__keeps_no_text_either(service: Service, end: str) -> None:
    path = service.create(policy={"transparency": "silent"})
    service.append(path, *(CHAT if end == "cancelled" else CHAT[:1]))
    asked = service.post(f"{path}/compactions", {"focus": SECRET}, status=None)
    if end == "cancelled":
        service.post(f"{path}/compactions", {"focus": SECRET}, status=202)  # joins
        service.post(f"compactions/{asked['id']}/cancel", status=200)
    assert service.get(f"compactions/{asked['id']}")["outcome"] == end
    assert SECRET not in stored(service, asked["id"])


def test_transparency__silent_with_a_request_that_follows__the_request_moves_on_whole(service: Service) -> None:
    path = service.create(policy={"transparency": "silent"})
    service.append(path, *CHAT)
    first = service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)
    service.post(f"{path}/compactions", {"focus": SECRET}, status=202)
    assert SECRET in stored(service, first["id"])
    jobs.run(claim)
    assert SECRET not in stored(service, first["id"])
    [_, second] = service.compactions(path)
    assert second["focus"] == SECRET


def log_of(service: Service, path: str, count: int) -> list[Any]:
    """The log after `count` compactions without a model, oldest first."""
    for _ in range(count):
        service.append(path, *CHAT[:2])
        service.compact(path, focus=SECRET)
    return service.compactions(path)


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_log_retention__more_entries_than_that__the_older_lose_their_texts_first_in_first_out(
    service: Service, most: int
) -> None:
    path = service.create(policy={"log_retention": most, "keep_last_user_request": False})
    entries = log_of(service, path, 4)
    assert [bool(one["summary"]) for one in entries] == [False] * max(0, 4 - most) + [True] * min(4, most)
    for one in entries[: max(0, 4 - most)]:
        texts = ("sections", "dropped_content", "entities", "notes", "focus", "instructions")
        assert not any(one[name] for name in texts)
        assert (one["outcome"], one["tokens_in"] > 0, one["from_position"] > 0) == ("applied", True, True)
        assert SECRET not in stored(service, one["id"])
    assert service.get(f"{path}/stats")["outcomes"]["applied"] == 4
    with tenant_scope(service.tenant_id):
        assert all(node.text for node in Summary.objects.filter(conversation_id=entries[0]["conversation"]))


def test_log_retention__live_compaction__is_no_entry_yet(service: Service) -> None:
    path = service.create(policy={"log_retention": 1, "keep_last_user_request": False})
    [entry] = log_of(service, path, 1)
    service.append(path, *CHAT[:2])
    asked = service.post(f"{path}/compactions", {"focus": SECRET}, status=202)
    assert [bool(one["focus"]) for one in service.compactions(path)] == [True, True]
    service.work_off()
    assert [one["id"] for one in service.compactions(path) if one["summary"]] == [asked["id"]]
    assert service.get(f"compactions/{entry['id']}")["summary"] is None


def test_log_retention__other_conversations__keep_their_texts(service: Service) -> None:
    other = service.create(policy={"keep_last_user_request": False})
    [kept] = log_of(service, other, 1)
    log_of(service, service.create(policy={"log_retention": 0, "keep_last_user_request": False}), 1)
    assert service.get(f"compactions/{kept['id']}")["summary"]
