"""How a compaction lives with a model that fails (semantics 7: Accept, Bound, Fallback, Retry).

What each failure comes to, at each compaction and under each strategy: test_failure_matrix.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit, chain_problems
from tests.model_server import Control

COUNTER = counter_for("o200k_base", 1.0)
LINE = "In step {n} the agent changed src/module_{n}.py because test_{n} failed with code {n}7 and the user wanted it. "


def chat(service: Service, *, turns: int = 12, words: int = 12, **fields: Any) -> str:
    """A conversation of plain turns, large enough to be worth a summary."""
    path = service.create(**fields)
    for n in range(turns):
        text = "".join(LINE.replace("{n}", str(n * 100 + k)) for k in range(words))
        service.append(
            path, {"role": "user", "content": f"Question {n}. {text}"}, {"role": "assistant", "content": text}
        )
    return path


def positions_read(entry: Any) -> set[int]:
    passes = [one for one in entry["passes"] if one["status"] == "succeeded" and one["from_position"]]
    return {position for one in passes for position in range(one["from_position"], one["to_position"] + 1)}


def assert_sound(service: Service, path: str) -> None:
    identifier = path.removeprefix("conversations/")
    assert chain_problems(service.tenant_id, identifier) == []
    assert audit(service.tenant_id, identifier, COUNTER) == []


@pytest.mark.parametrize(
    ("behaviour", "reason", "calls"),
    [
        ("empty", "empty", 1),
        ("status:401", "authentication", 1),
        ("redirect:http://127.0.0.1:9/", None, 1),
        ("status:500", "server_error", 5),
    ],
)
def test_compaction__model_fails__falls_back_and_says_why(
    service: Service, models: Control, model: str, behaviour: str, reason: str | None, calls: int
) -> None:
    models.script(model, behaviour)
    service.summarizer(models, model)
    path = chat(service)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "extractive")
    assert reason is None or entry["fallback_reason"] == reason
    assert len(models.calls(model)) == calls
    assert [(call.status, call.error) for call in service.calls(entry["id"])] == [
        ("failed", entry["fallback_reason"])
    ] * calls
    failed, extractive = entry["passes"]
    assert (failed["status"], failed["error"]) == ("failed", entry["fallback_reason"])
    assert (extractive["status"], extractive["model"]) == ("succeeded", None)
    assert entry["context_after"]["tokens"] < entry["context_before"]["tokens"]
    assert_sound(service, path)


@pytest.mark.parametrize("behaviour", ["empty", "429:60"])
def test_compaction__model_fails_and_no_fallback_allowed__fails_and_changes_nothing(
    service: Service, models: Control, model: str, behaviour: str
) -> None:
    models.script(model, behaviour)
    service.summarizer(models, model)
    path = chat(service, policy={"extractive_fallback": False})
    before = service.context(path)
    entry = service.compact(path)
    assert (entry["status"], entry["outcome"]) == ("failed", "failed")
    assert entry["reason"] == entry["passes"][-1]["error"]
    assert len(models.calls(model)) == 1
    after = service.context(path)
    assert (after["messages"], after["covered"], after["meter"]) == (before["messages"], None, before["meter"])
    assert service.get(path)["compaction"] == {"state": "idle", "live": None, "last": entry["id"]}


def test_compaction__no_model_and_no_fallback_allowed__fails(service: Service) -> None:
    path = chat(service, policy={"extractive_fallback": False})
    entry = service.compact(path)
    assert (entry["outcome"], entry["reason"], entry["passes"]) == ("failed", "no_model", [])


def test_compaction__no_model__is_extractive_and_says_so(service: Service) -> None:
    entry = service.compact(chat(service))
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "extractive", "no_model")


def test_compaction__transient_error__is_retried_after_what_the_provider_asked(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, ["429:7", "status:500", "honest"])
    service.summarizer(models, model)
    path = chat(service)
    start = service.clock.ahead
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "llm", None)
    assert (service.clock.ahead - start).total_seconds() >= 7
    assert [call.status for call in service.calls(entry["id"])] == ["failed", "failed", "ok"]
    assert len(entry["passes"]) == 1


def test_compaction__hanging_model__is_left_after_the_timeout(
    service: Service, models: Control, model: str, settings: Any
) -> None:
    settings.MODEL_CALL_TIMEOUT = 0.3
    models.script(model, ["hang", "honest"])
    service.summarizer(models, model)
    entry = service.compact(chat(service))
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert [(call.status, call.error) for call in service.calls(entry["id"])] == [("failed", "timeout"), ("ok", "")]


def test_compaction__first_model_fails__the_next_one_writes_the_summary(
    service: Service, models: Control, model: str
) -> None:
    second, third = f"{model}-2", f"{model}-3"
    models.script(model, "status:401")
    models.script(second, "refusal")
    service.summarizer(models, model, second, third)
    path = chat(service)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"], entry["model"]) == ("applied", "llm", third)
    assert entry["fallback_reason"] == "authentication"
    assert [(one["model"], one["error"]) for one in entry["passes"]] == [
        (model, "authentication"), (second, "refusal"), (third, None),
    ]  # fmt: skip
    assert_sound(service, path)


def test_compaction__policy_names_its_models__they_go_before_the_tenants(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, "tenants-own")
    path = chat(service, policy={"summarizer_model": model, "fallback_models": []})
    assert service.compact(path)["model"] == model


@pytest.mark.parametrize("most", [1, 2, 4])
def test_compaction__summary_too_long__is_shortened_pass_by_pass(
    service: Service, models: Control, model: str, most: int
) -> None:
    models.script(model, "long_then_short")  # 3, 2, 1.4 and 0.9 times the asked length
    service.summarizer(models, model)
    path = chat(
        service, policy={"summary_max_tokens": 120, "resummarize_max_passes": most, "target_compression_ratio": 2}
    )
    before = service.passes
    entry = service.compact(path)
    kinds = [one["kind"] for one in entry["passes"]]
    assert kinds == ["summary", *["resummarize"] * (len(kinds) - 1)]
    assert len(kinds) == min(most, 3) + 1
    assert service.passes - before == len(kinds) == len(models.calls(model))  # each its own claim, as each its own task
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert COUNTER.text(entry["summary"]) <= 120
    assert all(one["tokens_in"] > 0 and one["tokens_out"] > 0 for one in entry["passes"])
    assert entry["llm_tokens_in"] == sum(one["tokens_in"] for one in entry["passes"])
    assert_sound(service, path)


def test_compaction__summary_never_shrinks__is_cut_after_one_vain_pass(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, "fixed_tokens:600")
    service.summarizer(models, model)
    path = chat(service, policy={"summary_max_tokens": 200})
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert [one["kind"] for one in entry["passes"]] == ["summary", "resummarize"]
    assert 0 < COUNTER.text(entry["summary"]) <= 200
    assert "cut_from_tokens" in entry["notes"][0]


def test_compaction__summary_longer_than_what_it_replaces__is_refused(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, "longer")
    service.summarizer(models, model)
    entry = service.compact(chat(service, turns=4, words=3))
    assert entry["method"] != "llm"
    assert len(models.calls(model)) == 1


def test_compaction__window_smaller_than_told__chunks_shrink_and_all_is_read(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, ["context_length", "context_length", "honest"])
    service.summarizer(models, model)
    path = chat(service)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert [one["error"] for one in entry["passes"][:2]] == ["context_length", "context_length"]
    assert positions_read(entry) == set(range(entry["from_position"], entry["to_position"] + 1))
    assert_sound(service, path)


def test_compaction__context_length_for_ever__ends_extractive(service: Service, models: Control, model: str) -> None:
    models.script(model, "context_length")
    service.summarizer(models, model)
    path = chat(service)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "extractive", "context_length")
    assert len(models.calls(model)) < 10
    assert_sound(service, path)


def small(monkeypatch: pytest.MonkeyPatch, **windows: int) -> None:
    """Give scripted models other windows than unknown ones have."""
    from dataclasses import replace

    from compaction_service.compactions import preparing

    known = preparing.summarizer_spec  # type: ignore[attr-defined]

    def spec(name: str) -> Any:
        found = known(name)
        suffix = name.rpartition("-")[2]
        return replace(found, context_window=windows[suffix]) if suffix in windows else found

    monkeypatch.setattr(preparing, "summarizer_spec", spec)


def test_compaction__span_larger_than_the_summarisers_window__is_folded_and_all_is_read(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, small=5000)
    model = f"{model}-small"
    service.summarizer(models, model)
    path = chat(service, turns=14, words=16, context_window=32_000)
    entry = service.compact(path)
    kinds = [one["kind"] for one in entry["passes"]]
    assert kinds == [*["chunk"] * (len(kinds) - 1), "summary"]
    assert len(kinds) > 3
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert positions_read(entry) == set(range(1, entry["to_position"] + 1))
    prompts = "".join(str(call["body"]["messages"]) for call in models.calls(model))
    assert all(f"Question {n}." in prompts for n in range(entry["to_position"] // 2))
    assert_sound(service, path)


def test_compaction__one_message_larger_than_the_window__is_read_in_pieces(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, small=5000)
    model = f"{model}-small"
    service.summarizer(models, model)
    path = service.create(context_window=64_000)
    huge = " ".join(f"mark{n} is the number {n}." for n in range(1200))
    service.append(path, {"role": "user", "content": "Go."}, {"role": "assistant", "content": huge})
    service.append(path, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "Done."})
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    prompts = "".join(str(call["body"]["messages"]) for call in models.calls(model))
    assert [n for n in range(1200) if f"mark{n} " not in prompts] == []
    assert_sound(service, path)


@pytest.mark.parametrize(("first", "second"), [("small", "tiny"), ("tiny", "small")])
def test_compaction__model_fails_between_chunks__the_next_reads_what_was_not_read(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    small(monkeypatch, small=9000, tiny=4000)
    first, second = f"{model}-{first}", f"{model}-{second}"
    models.script(first, ["honest", "status:401"])
    service.summarizer(models, first, second)
    path = chat(service, turns=16, words=16, context_window=32_000)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"], entry["fallback_reason"]) == ("applied", "llm", "authentication")
    assert positions_read(entry) == set(range(1, entry["to_position"] + 1))
    prompts = "".join(str(call["body"]["messages"]) for call in [*models.calls(first)[:1], *models.calls(second)])
    assert [n for n in range(entry["to_position"] // 2) if f"Question {n}." not in prompts] == []
    assert_sound(service, path)


def test_compaction__failed_calls__their_cost_is_in_ledger_and_log(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, "refusal")
    service.summarizer(models, model)
    entry = service.compact(chat(service))
    spent = service.calls(entry["id"])
    assert sum(call.tokens_in for call in spent) == entry["llm_tokens_in"] > 0
    assert sum(call.tokens_out for call in spent) == entry["llm_tokens_out"] > 0
    assert Decimal(str(entry["cost"])) == sum(call.cost or 0 for call in spent)


def test_compaction__threshold_after_a_failure__waits_for_growth(service: Service, models: Control, model: str) -> None:
    """No loop may call a model without progress."""
    models.script(model, "refusal")
    service.summarizer(models, model)
    path = chat(service, turns=22, policy={"enabled": True, "extractive_fallback": False})
    service.append(path, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "So."})
    service.work_off()
    calls = len(models.calls(model))
    assert calls >= 1
    for _ in range(5):
        service.append(path, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "So."})
        service.work_off()
    assert len(models.calls(model)) == calls
    text = LINE * 60
    service.append(path, {"role": "user", "content": text}, {"role": "assistant", "content": text})
    service.append(path, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "So."})
    service.work_off()  # the long request is no longer the last one, which would stay whatever is covered
    assert len(models.calls(model)) == calls + 1


@pytest.mark.parametrize("behaviour", ["braces", "nul", "no_usage"])
def test_compaction__odd_but_good_answer__is_taken(
    service: Service, models: Control, model: str, behaviour: str
) -> None:
    models.script(model, behaviour)
    service.summarizer(models, model)
    path = chat(service)
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert "\x00" not in entry["summary"]
    assert entry["llm_tokens_in"] > 0
    service.context(path)
