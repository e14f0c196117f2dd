"""A span larger than the summariser's window: every pass reads what it needs, and nothing is left out (semantics 7)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from compaction_service.compactions import jobs, preparing, spans
from compaction_service.compactions.models import Pass
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.integration.test_faults import assert_sound, chat, positions_read, small
from tests.model_server import Control


def test_fold__of_many_chunks__each_pass_reads_on_from_where_the_last_one_ended(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, tiny=3000)
    model = f"{model}-tiny"
    service.summarizer(models, model)
    path = chat(service, turns=16, words=16, context_window=200_000)
    read: list[tuple[int, int]] = []
    rows = spans.span_rows

    def noted(conversation_id: Any, first: int, last: int) -> Any:
        found = rows(conversation_id, first, last)
        if last < 31:  # not the tail
            read.append((first, len(found)))
        return found

    monkeypatch.setattr(preparing, "span_rows", noted)
    entry = service.compact(path)
    chunks = [one for one in entry["passes"] if one["kind"] == "chunk"]
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert len(chunks) > 10
    assert positions_read(entry) == set(range(entry["from_position"], entry["to_position"] + 1))
    whole = next(number for number, (first, _) in enumerate(read) if number and first == 1)  # the last few passes
    early = read[:whole]
    assert [first for first, _ in early] == [one["from_position"] for one in chunks[: len(early)]]
    assert len(early) > len(chunks) * 0.4
    assert max(count for _, count in early) <= 20  # two windows, whatever the length of the span
    prompts = "".join(str(call["body"]["messages"]) for call in models.calls(model))
    assert [n for n in range(14) if f"Question {n}." not in prompts] == []
    assert_sound(service, path)


def test_fold__begun_by_a_version_that_counted_chunks_from_the_start__goes_on(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker of before left in the job: the span's first position, and how many chunks were read."""
    small(monkeypatch, small=5000)
    model = f"{model}-small"
    service.summarizer(models, model)
    path = chat(service, turns=14, words=16, context_window=32_000)
    asked = service.post(f"{path}/compactions", status=202)
    for _ in range(2):
        claim = service.claim()
        assert claim is not None
        jobs.run(claim)
    row = service.row(asked["id"])
    with tenant_scope(service.tenant_id):
        row.work |= {"from": 1, "chunk": 2}
        del row.work["opened"]
        row.save(update_fields=["work"])
    service.work_off()
    entry = service.get(f"compactions/{asked['id']}")
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert positions_read(entry) == set(range(1, entry["to_position"] + 1))


def test_pass__of_a_kind_that_only_a_newer_version_knows__is_left_to_it(service: Service) -> None:
    asked = service.post(f"{chat(service)}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)
        Pass.objects.filter(compaction_id=asked["id"]).update(kind="of_tomorrow")
    service.clock.forward(timedelta(minutes=1))
    claim = service.claim()
    assert claim is not None
    jobs.run(claim)
    assert service.claim() is None
    service.clock.forward(timedelta(seconds=6))
    again = service.claim()
    assert again is not None
    assert again.attempts == 1
