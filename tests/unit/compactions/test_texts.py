from __future__ import annotations

from typing import Any

import pytest

from compaction_service.compactions.models import Pass
from tenants.scope import tenant_scope
from tests.inprocess import Service

TEXT = " ".join(f"step {n} changed src/module_{n}.py" for n in range(200))
CHAT = [{"role": role, "content": TEXT} for role in ("user", "assistant", "user", "assistant")]
TEXTS = ("summary", "sections", "dropped_content", "entities", "notes", "focus", "instructions")


def logged(service: Service, **policy: Any) -> Any:
    path = service.create(policy=policy)
    service.append(path, *CHAT)
    return service.compact(path, focus="the modules", instructions="Be exact.")


def test_log__full__has_everything(service: Service) -> None:
    entry = logged(service)

    assert entry["summary"]
    assert entry["dropped_content"]
    assert entry["focus"] == "the modules"


def test_log__summary__has_neither_dropped_content_nor_notes(service: Service) -> None:
    entry = logged(service, transparency="summary")

    assert entry["summary"]
    assert (entry["dropped_content"], entry["notes"]) == ([], [])


def test_log__silent__has_no_text_and_the_chain_keeps_its_own(service: Service) -> None:
    entry = logged(service, transparency="silent")

    assert (entry["status"], entry["outcome"], entry["trigger"]) == ("succeeded", "applied", "manual")
    assert entry["tokens_in"] > entry["tokens_out"] > 0
    assert not any(entry[name] for name in (*TEXTS, "requested_by", "reason", "policy", "model"))
    with tenant_scope(service.tenant_id):
        assert not Pass.objects.filter(compaction_id=entry["id"]).exclude(output="").exists()
    assert service.get(f"conversations/{entry['conversation']}/summaries")["data"][0]["text"]


@pytest.mark.parametrize("keep", [0, 1])
def test_log__retention__older_entries_lose_their_texts_first(service: Service, keep: int) -> None:
    path = service.create(policy={"log_retention": keep})
    service.append(path, *CHAT)
    service.compact(path)
    service.append(path, *CHAT)
    service.compact(path)

    entries = service.compactions(path)

    assert [entry["outcome"] for entry in entries] == ["applied", "applied"]
    assert [bool(entry["summary"]) for entry in entries] == [False, keep == 1]
    assert all(entry["tokens_in"] > 0 for entry in entries)
    assert len(service.get(f"{path}/summaries")["data"]) == 2
