"""A change of model: what is shown at once, and the worker's recount."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone

from compaction_service.compactions import executing, jobs
from compaction_service.conversations import recounts, retokenizing
from compaction_service.conversations.models import Conversation, Message, Recount
from compaction_service.tokens.families import family
from compaction_service.tokens.messages import Counter, counter_for
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.invariants import audit

CLAUDE, GPT = "claude-3-5-sonnet-20241022", "gpt-4o"
CLAUDE_COUNTER = counter_for("cl100k_base/claude-3", 1.1)
GPT_COUNTER = counter_for("o200k_base", 1.0)
WORDS = "Zürich 東京 перевод tokens src/app.py 4711 と言います。 "
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def turns(count: int) -> list[dict[str, Any]]:
    return [{"role": role, "content": WORDS * 5 + str(n)} for n in range(count) for role in ("user", "assistant")]


def rounds(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Tool rounds, every third with a call that is given up."""
    made: list[dict[str, Any]] = []
    for n in range(first, first + count):
        ids = [f"a{n}", f"b{n}"]
        calls = [{"id": i, "type": "function", "function": {"name": "bash", "arguments": "{}"}} for i in ids]
        answered = ids[:1] if n % 3 == 0 else ids
        made += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": i, "content": WORDS * 20} for i in answered),
            {"role": "assistant", "content": f"Round {n}: {WORDS}"},
        ]
    return made


def row_of(service: Service, path: str) -> Conversation:
    with tenant_scope(service.tenant_id):
        return Conversation.objects.get(id=path.removeprefix("conversations/"))


def sums(row: Conversation) -> list[int]:
    return [
        row.system_tokens,
        row.tools_tokens,
        row.summary_tokens,
        row.carried_tokens,
        row.tail_tokens,
        row.pending_tokens,
        row.stored_tokens,
    ]


def problems(service: Service, path: str, counter: Counter) -> list[str]:
    return audit(service.tenant_id, path.removeprefix("conversations/"), counter)


@pytest.mark.parametrize(("old", "new"), [(GPT, CLAUDE), (CLAUDE, GPT)])
def test_model_change__another_tokenizer__is_scaled_at_once_and_recounted_by_a_worker(
    service: Service, old: str, new: str
) -> None:
    fields: dict[str, Any] = {"system": WORDS, "tools": [service.get("tools/compact")]}
    path = service.create(model=old, context_window=100_000, **fields)
    fresh = service.create(model=new, context_window=100_000, **fields)
    for one in (path, fresh):
        service.append(one, *turns(5), *rounds(4))
    before = row_of(service, path)

    changed = service.patch(path, {"model": new})["meter"]

    factor = family(service.get(f"models/{new}")["tokenizer"]).factor
    assert changed["method"] == "estimate"
    assert abs(changed["tokens"] - sum(sums(before)[:5]) * factor) <= 5
    late = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": WORDS}]
    assert service.append(path, *late)["meter"]["method"] == "estimate"
    service.append(fresh, *late)

    assert recounts.run_next()

    assert service.get(path)["meter"] == service.get(fresh)["meter"]
    assert sums(row_of(service, path)) == sums(row_of(service, fresh))
    with tenant_scope(service.tenant_id):
        rows = [
            list(
                Message.objects.filter(conversation_id=one.removeprefix("conversations/"))
                .order_by("position")
                .values("tokens", "extra_tokens", "answers")
            )
            for one in (path, fresh)
        ]
        assert not Recount.objects.exists()
    assert rows[0] == rows[1]
    assert service.context(path)["messages"] == service.context(fresh)["messages"]


def test_recount__an_anthropic_conversation_that_the_assistant_begins__counts_what_opens_it(service: Service) -> None:
    block = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": WORDS}}
    said = [
        {"role": "assistant", "content": [{"type": "text", "text": WORDS}, block]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": WORDS * 20}]},
        {"role": "assistant", "content": WORDS},
    ]
    path, fresh = (service.create(model=name, format="anthropic", system=WORDS) for name in (CLAUDE, GPT))
    for one in (path, fresh):
        service.append(one, *said)

    service.patch(path, {"model": GPT})
    assert recounts.run_next()

    assert service.get(path)["meter"] == service.get(fresh)["meter"]
    assert sums(row_of(service, path)) == sums(row_of(service, fresh))


def test_model_change__in_the_running_service__is_recounted_by_its_worker(api: httpx.Client) -> None:
    path = f"/conversations/{api.post('/conversations', json={'model': CLAUDE, 'messages': turns(3)}).json()['id']}"

    assert api.patch(path, json={"model": GPT}).json()["meter"]["method"] == "estimate"

    end = time.monotonic() + 20
    while api.get(path).json()["meter"]["method"] != "exact":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_model_change__same_tokenizer__needs_no_recount(service: Service) -> None:
    path = service.create(model=GPT)
    service.append(path, *turns(2))

    before = service.get(path)["meter"]
    after = service.patch(path, {"model": "gpt-4o-2024-08-06"})["meter"]

    assert (after["tokens"], after["method"]) == (before["tokens"], "exact")
    assert not recounts.run_next()


def test_model_change__and_back_before_the_recount__is_exact_at_once(service: Service) -> None:
    path = service.create(model=GPT)
    service.append(path, *turns(2))
    before = service.get(path)["meter"]

    service.patch(path, {"model": CLAUDE})
    assert service.patch(path, {"model": GPT})["meter"] == before
    recounts.run_next()

    assert service.get(path)["meter"] == before
    assert problems(service, path, GPT_COUNTER) == []


@pytest.mark.parametrize("moment", [2, 3], ids=["between pages", "before the lock"])
def test_recount__messages_come_while_it_counts__are_counted_too(
    service: Service, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    path = service.create(model=GPT, context_window=100_000)
    service.append(path, *turns(3))
    service.patch(path, {"model": CLAUDE})
    entered = []

    @contextmanager
    def scope(tenant_id: Any) -> Iterator[None]:
        entered.append(tenant_id)
        if len(entered) == moment:
            service.append(path, *rounds(3))
        with tenant_scope(tenant_id):
            yield

    with monkeypatch.context() as patched:
        patched.setattr(retokenizing, "tenant_scope", scope)
        assert recounts.run_next()

    assert problems(service, path, CLAUDE_COUNTER) == []
    assert row_of(service, path).tokenizer == "cl100k_base/claude-3"


def test_recount__a_compaction_runs__waits_for_its_end(service: Service) -> None:
    path = service.create(model=GPT, policy={"target": 0})
    service.append(path, *turns(6))
    service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)
    service.patch(path, {"model": CLAUDE})

    assert recounts.run_next()
    assert row_of(service, path).tokenizer == "o200k_base"
    jobs.run(claim)
    service.clock.forward(recounts.LATER)
    assert recounts.run_next()

    assert row_of(service, path).tokenizer == "cl100k_base/claude-3"
    assert problems(service, path, CLAUDE_COUNTER) == []


def test_recount__clocks_of_machines_differ__goes_by_the_databases(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = timezone.now() + timedelta(hours=1)
    path = service.create(model=GPT)
    service.append(path, *turns(2))
    with monkeypatch.context() as fast:
        fast.setattr(timezone, "now", lambda: ahead)
        service.patch(path, {"model": CLAUDE})
    assert recounts.due(10) == 1
    assert recounts._claim() is not None
    with monkeypatch.context() as fast:
        fast.setattr(timezone, "now", lambda: ahead)
        assert recounts._claim() is None  # its lease is over on this machine only
    service.clock.forward(recounts.LEASE)
    assert recounts.run_next()


def test_recount__masks_carried_messages_and_summaries__are_all_counted_and_a_revert_too(service: Service) -> None:
    policy = {"target": 0, "keep_tool_results": 1, "mask_min_reclaim_tokens": 0}
    path = service.create(model=GPT, context_window=100_000, policy=policy)
    service.append(path, *turns(2), *rounds(4), details=[{"pinned": n == 1} for n in range(4 + len(rounds(4)))])
    assert service.compact(path)["outcome"] == "applied"
    service.append(path, {"role": "user", "content": WORDS}, *rounds(4, first=4))
    assert service.compact(path)["outcome"] == "applied"
    masked = service.context(path)["masked"]
    assert row_of(service, path).carried
    service.patch(path, {"model": CLAUDE})

    assert recounts.run_next()

    assert problems(service, path, CLAUDE_COUNTER) == []
    assert service.context(path)["masked"] == masked
    for entry in service.compactions(path)[::-1]:
        service.post(f"compactions/{entry['id']}/revert", status=200)
        assert problems(service, path, CLAUDE_COUNTER) == []


def test_recount__the_worker_died__another_takes_it_after_the_lease(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = service.create(model=GPT)
    service.append(path, *turns(2))
    service.patch(path, {"model": CLAUDE})

    with monkeypatch.context() as patched:
        patched.setattr(recounts, "conversation_recount", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recounts.run_next()
    assert not recounts.run_next()
    service.clock.forward(recounts.LEASE)
    assert recounts.run_next()

    assert problems(service, path, CLAUDE_COUNTER) == []


def test_recount__its_conversation_was_erased__is_gone_too(service: Service) -> None:
    path = service.create(model=GPT)
    service.patch(path, {"model": CLAUDE})

    service.call("DELETE", path)

    assert not recounts.run_next()


def test_recount__a_refusal_meanwhile__shows_no_fewer_tokens_than_the_provider_said(service: Service) -> None:
    path = service.create(model=GPT, context_window=100_000)
    service.append(path, *turns(20))
    tokens = service.patch(path, {"model": CLAUDE})["meter"]["tokens"]
    asked = {"trigger": "overflow", "overflow": {"input_tokens": tokens * 2}}
    asked_id = service.post(f"{path}/compactions", asked, status=202)["id"]
    service.post(f"compactions/{asked_id}/cancel", status=200)

    assert recounts.run_next()

    meter = service.get(path)["meter"]
    assert meter["tokens"] == pytest.approx(tokens * 2, rel=0.01)
    assert meter["method"] == "calibrated"


def test_usage__reported_before_the_recount__teaches_nothing(service: Service) -> None:
    path = service.create(model=GPT, context_window=100_000)
    service.append(path, *turns(20))
    service.patch(path, {"model": CLAUDE})
    version = service.context(path)["context_version"]

    service.append(path, *turns(1), usage={"input_tokens": 9000}, context_version=version)

    assert row_of(service, path).factor == 1.1


def test_model_change__to_a_smaller_window__triggers_at_once_and_the_context_is_cut_meanwhile(
    service: Service,
) -> None:
    path = service.create(model=GPT, context_window=None, policy={"enabled": True, "target": 0})
    service.append(path, *({"role": role, "content": "word " * 1500} for role in ("user", "assistant") * 4))
    assert not service.context(path)["degraded"]

    service.patch(path, {"model": "gpt-4"})

    context = service.context(path)
    assert (context["fits"], context["degraded"]) == (True, True)
    assert context["meter"]["window"] == 8192
    assert context["compaction"]["trigger"] == "threshold"
    service.work_off()
    recounts.run_next()
    context = service.context(path)
    assert (context["fits"], context["degraded"], context["meter"]["method"]) == (True, False, "exact")


def test_model_change__over_the_new_window_with_an_unanswered_request__is_an_overflow(service: Service) -> None:
    path = service.create(model=GPT, context_window=None, policy={"enabled": True, "target": 0})
    service.append(path, *({"role": role, "content": "word " * 3000} for role in ("user", "assistant", "user")))

    service.patch(path, {"model": "gpt-4"})

    assert service.get(path)["compaction"]["state"] == "queued"
    assert service.compactions(path)[0]["trigger"] == "overflow"


def test_context__for_another_model__fits_its_window_is_an_estimate_and_stores_nothing(service: Service) -> None:
    path = service.create(model=CLAUDE, context_window=None)
    service.append(path, *({"role": role, "content": "word " * 3000} for role in ("user", "assistant") * 4))
    own, before = service.context(path), row_of(service, path)

    other = service.context(path, model="gpt-4")

    assert other["meter"]["window"] == 8192
    assert (other["fits"], other["degraded"], other["meter"]["method"]) == (True, True, "estimate")
    assert sum(GPT_COUNTER.message("openai", m) for m in other["messages"]) <= 8192 - 2048
    assert service.context(path) == own
    assert sums(row_of(service, path)) == sums(before)
    larger = service.context(path, model=GPT)
    assert not larger["degraded"]
    counted = sum(GPT_COUNTER.message("openai", m) for m in larger["messages"])
    assert larger["meter"]["tokens"] == pytest.approx(counted, rel=0.12)


def test_usage__of_a_context_for_another_model_or_cut__teaches_nothing(service: Service) -> None:
    path = service.create(model=CLAUDE, context_window=6000)
    service.append(path, *({"role": role, "content": "word " * 3000} for role in ("user", "assistant") * 2))
    cut, other = service.context(path), service.context(path, model=GPT)
    assert cut["degraded"]

    for context in (cut, other):
        service.append(path, usage={"prompt_tokens": 3000}, context_version=context["context_version"])

    assert not row_of(service, path).calibrated


# --- the window -------------------------------------------------------------------------------------------------------

SMALL, SMALL_WINDOW = "gpt-4", 8192


@pytest.mark.parametrize(
    ("given", "window", "source"),
    [(80_000, SMALL_WINDOW, "registry"), (4000, 4000, "request"), (None, 8192, "registry")],
)
def test_model_change__to_a_smaller_window__a_given_one_stays_only_where_the_model_takes_more(
    service: Service, given: int | None, window: int, source: str
) -> None:
    path = service.create(context_window=given)

    meter = service.patch(path, {"model": SMALL})["meter"]

    assert (meter["window"], meter["window_source"]) == (window, source)
    assert meter["limit"] <= window


def test_model_change__with_a_window__takes_that_one(service: Service) -> None:
    path = service.create(context_window=80_000)

    assert service.patch(path, {"model": SMALL, "context_window": 32_000})["meter"]["window"] == 32_000


def test_model_change__to_one_that_is_not_listed__keeps_the_window(service: Service) -> None:
    path = service.create(context_window=80_000)

    assert service.patch(path, {"model": "nobody/knows-this"})["meter"]["window"] == 80_000


def test_window_change__smaller__starts_a_compaction_like_a_change_of_the_model(service: Service) -> None:
    path = service.create(context_window=80_000, policy={"enabled": True})
    service.append(path, *turns(20))
    service.work_off()
    assert service.compactions(path) == []

    changed = service.patch(path, {"context_window": 1500})

    assert changed["meter"]["window"] == 1500
    assert changed["compaction"]["state"] == "queued"
    service.work_off()
    assert [one["trigger"] for one in service.compactions(path)] == ["threshold"]
    events = service.get("audit?action=conversation.changed&limit=250")["data"]
    assert [one["changed"] for one in events if one["target"].endswith(path.removeprefix("conversations/"))] == [
        ["context_window"]
    ]


def test_window_change__after_an_irreducible_one__tries_again_at_once(service: Service) -> None:
    path = service.create(context_window=1000, policy={"enabled": True, "max_tokens": 100})
    service.append(path, {"role": "user", "content": WORDS * 20}, {"role": "assistant", "content": "ok"})
    service.work_off()
    assert row_of(service, path).retry_from_tokens is not None

    service.patch(path, {"context_window": 900})
    service.work_off()

    assert len(service.compactions(path)) == 2


def test_window_change__null__is_the_models_own_again(service: Service) -> None:
    path = service.create(context_window=1000)

    meter = service.patch(path, {"context_window": None})["meter"]

    assert (meter["window"], meter["window_source"]) == (128_000, "registry")


def test_window_change__null_for_a_model_that_is_not_listed__is_refused_and_changes_nothing(service: Service) -> None:
    path = service.create(model="nobody/knows-this", context_window=9000)

    (error,) = service.patch(path, {"context_window": None}, status=400)["errors"]

    assert (error["code"], error["attr"]) == ("model_unknown", "context_window")
    assert service.get(path)["meter"]["window"] == 9000
    assert service.patch(path, {"context_window": None, "model": "gpt-4o"})["meter"]["window"] == 128_000


@pytest.mark.parametrize("window", [0, 255, -1, "8000", True, 100_000_001, 1.5])
def test_window_change__not_a_window__names_the_field(service: Service, window: Any) -> None:
    (error,) = service.patch(service.create(), {"context_window": window}, status=400)["errors"]

    assert error["attr"] == "context_window"


LONG_SUMMARIES = {"target": 0, "summary_max_tokens": 4096, "keep_last_user_request": False}


def long_talk(service: Service) -> str:
    """Enough for a summary longer than a small model's window allows."""
    path = service.create(model=GPT, context_window=None, policy=LONG_SUMMARIES)
    said = (f"Step {n}: src/part_{n}.py costs {n} euros. " * 12 for n in range(300))
    service.append(path, *({"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)))
    return path


def within_bound(service: Service, path: str) -> bool:
    """The bound of a summary for gpt-4's window: a quarter of its limit."""
    counter = counter_for("cl100k_base", 1.0)
    limit = service.context(path)["meter"]["limit"]
    return all(counter.text(node["text"]) <= limit // 4 for node in service.get(f"{path}/summaries")["data"])


def test_model_change__to_a_smaller_one_during_a_pass__its_summary_is_over_the_bound_and_not_applied(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = long_talk(service)
    execute = executing.execute

    def changed_first(step: Any) -> Any:
        service.patch(path, {"model": "gpt-4"})
        return execute(step)

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "execute", changed_first)
        entry = service.compact(path)

    assert (entry["status"], entry["outcome"], entry["reason"]) == ("failed", "stale", "bound_changed")
    assert service.context(path)["covered"] is None
    assert service.compact(path)["outcome"] == "applied"
    assert within_bound(service, path)


def test_model_change__to_a_smaller_one_between_passes__the_next_keeps_to_its_bound(service: Service) -> None:
    path = long_talk(service)
    service.post(f"{path}/compactions", status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)
    service.patch(path, {"model": "gpt-4"})

    jobs.run(claim)
    service.work_off()

    assert [entry["outcome"] for entry in service.compactions(path)] == ["applied"]
    assert within_bound(service, path)
