from __future__ import annotations

import json
import logging
from contextvars import copy_context
from io import StringIO
from typing import Any

import pytest

from compaction_service import logs
from compaction_service.compactions import jobs
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.model_server import Control


def words(count: int, word: str = "step") -> str:
    return " ".join(f"{word} {n} changed src/module_{n}.py" for n in range(count))


CHAT = [{"role": role, "content": words(200)} for role in ("user", "assistant", "user", "assistant")]


@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("by_model", [True, False])
def test_bound__little_room_beside_what_stays__the_summary_fits_into_it(
    service: Service, models: Control, model: str, by_model: bool, factor: float
) -> None:
    if by_model:
        service.summarizer(models, model)
    path = service.create(context_window=8000, policy={"reserve_output_tokens": 2000, "target": 0, "max_tokens": 6000})
    service.append(path, {"role": "user", "content": words(int(900 / factor))}, {"role": "assistant", "content": "ok"})
    with tenant_scope(service.tenant_id):
        row = Conversation.objects.get(id=path.removeprefix("conversations/"))
        Conversation.objects.filter(id=row.id).update(factor=factor, calibrated=factor != 1.0)
    newest = {"role": "assistant", "content": words(int(560 / factor))}  # leaves a few hundred tokens of the window
    service.append(path, {"role": "user", "content": "go on"}, newest)
    plan = service.post(f"{path}/compactions", {"dry_run": True}, status=200)["plan"]
    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    room = 6000 - (entry["context_after"]["tokens"] - entry["context_after"]["breakdown"]["summaries"])
    assert 64 < room < 1500, room
    assert entry["context_after"]["tokens"] <= 6000
    assert plan["summary_target"] <= room
    assert not service.context(path)["degraded"]


def test_entities__of_a_summary__are_names_in_its_sections_and_no_headings(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={"summary_sections": ["Overall Goal", "Next Steps", "Open Questions"]})
    service.append(path, *CHAT)
    for entry in (service.compact(path), service.get(f"{path}/summaries")["data"][0]):
        assert entry["entities"]
        assert not {"Overall Goal", "Next Steps", "Open Questions"} & set(entry["entities"])


def test_overflow__provider_takes_less_than_the_window__this_compaction_gets_under_it(service: Service) -> None:
    path = service.create(context_window=100_000, policy={"reserve_output_tokens": 4000})
    service.append(path, *CHAT, *CHAT)
    before = service.get(path)["meter"]
    assert before["tokens"] > 10_000
    entry = service.compact(path, trigger="overflow", overflow={"max_tokens": 8000})
    assert entry["outcome"] == "applied"
    assert {"provider_max_tokens": 8000} in entry["notes"]
    assert entry["context_after"]["tokens"] <= 8000 - 4000
    assert service.get(path)["meter"]["window"] == before["window"]


@pytest.mark.parametrize("most", [1, 2, 4000, 2**31 - 1])
def test_overflow__any_maximum__is_survived(service: Service, most: int) -> None:
    path = service.create(context_window=100_000, policy={"reserve_output_tokens": 4000})
    service.append(path, *CHAT)
    asked = {"trigger": "overflow", "overflow": {"max_tokens": most}}
    assert service.post(f"{path}/compactions", {**asked, "dry_run": True}, status=200)["plan"]["span"]
    assert service.compact(path, **asked)["outcome"] == "applied"


def test_overflow__numbers_beside_another_trigger__are_refused(service: Service) -> None:
    path = service.create(context_window=100_000)
    service.append(path, *CHAT)
    (error,) = service.post(f"{path}/compactions", {"overflow": {"max_tokens": 5000}}, status=400)["errors"]
    assert (error["attr"], error["detail"]) == ("overflow", "Goes with `trigger: overflow` only.")
    assert service.compactions(path) == []


def test_request_id__of_the_request_that_asked__is_in_every_line_of_its_passes(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    service.post(f"{path}/compactions", status=202, **{"X-Request-Id": "asked-1"})
    seen: list[Any] = []
    for name in ("step_of", "execute", "finish"):
        real = getattr(jobs, name)

        def noting(*arguments: Any, real: Any = real, name: str = name) -> Any:
            seen.append((name, logs.request_id.get()))
            return real(*arguments)

        monkeypatch.setattr(jobs, name, noting)
    outside = logs.request_id.get()
    service.work_off()
    assert seen == [("step_of", "asked-1"), ("execute", "asked-1"), ("finish", "asked-1")]
    assert logs.request_id.get() == outside


def test_request_id__pass_that_fails__is_in_the_line_about_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    service.post(f"{path}/compactions", status=202, **{"X-Request-Id": "asked-2"})
    claim = service.claim()
    assert claim is not None

    def fail(_step: Any) -> Any:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(jobs, "execute", fail)
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    jobs.logger.addHandler(handler)
    with pytest.raises(jobs.Crashed):
        jobs.run(claim)
    jobs.logger.removeHandler(handler)
    line = json.loads(written.getvalue())
    assert (line["message"], line["request_id"]) == ("pass failed", "asked-2")


def test_request_id__of_a_request_that_joins_a_running_one__is_that_of_the_compaction_that_follows(
    service: Service,
) -> None:
    path = service.create()
    service.append(path, *CHAT)
    service.post(f"{path}/compactions", status=202, **{"X-Request-Id": "first"})
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        copy_context().run(jobs.begin, claim)  # it sets the request id of what is logged from here on
    service.post(f"{path}/compactions", status=202, **{"X-Request-Id": "second"})
    service.work_off(wait=False)
    jobs.run(claim)
    rows = [service.row(one["id"]).request_id for one in service.compactions(path)]
    assert rows == ["first", "second"]
