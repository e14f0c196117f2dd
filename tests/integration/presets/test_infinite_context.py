"""The preset `infinite_context`, property by property of the interface it was made from."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.integration.presets.talk import asked, assistant, turns, user
from tests.model_server import Control

POLICY = {"preset": "infinite_context", "enabled": True}
COUNTER = counter_for("o200k_base", 1.0)


def tokens(service: Service, path: str) -> int:
    found: int = service.context(path)["meter"]["tokens"]
    return found


def sized(service: Service, talk: list[Any]) -> int:
    """Tokens of a conversation with these messages."""
    path = service.create(context_window=None)
    service.append(path, *talk)
    return tokens(service, path)


def with_limit(service: Service, limit: int) -> str:
    """A conversation that is compacted at so many tokens, three quarters of its window."""
    window = next(n for n in range(limit, 2 * limit) if int(0.75 * n) == limit)
    path = service.create(policy={**POLICY, "reserve_output_tokens": 0}, context_window=window)
    assert service.get(path)["meter"]["limit"] == limit
    return path


# > "Enable infinite context window management."
@pytest.mark.parametrize("enabled", [True, False])
def test_enabled__over_the_threshold__compacts_only_if_set(service: Service, enabled: bool) -> None:
    path = service.create(policy={**POLICY, "enabled": enabled}, context_window=1_500)
    done = service.append(path, *turns(1, 2, 3))
    assert (done["compaction"] is not None) is enabled
    assert (service.work_off() > 0) is enabled
    assert service.get(service.create(policy={"preset": "infinite_context"}))["policy"]["enabled"] is False


# > "Compaction strategy to use."
@pytest.mark.parametrize("strategy", ["sliding", "hierarchical", "hybrid"])
def test_strategy__of_the_policy__is_used_and_logged(service: Service, strategy: str) -> None:
    path = service.create(policy={**POLICY, "strategy": strategy, "preserve_recent_turns": 1})
    spans = []
    for number in range(2):
        service.append(path, *turns(2 * number, 2 * number + 1))
        entry = service.compact(path)
        assert entry["strategy"] == strategy
        spans.append(len(service.context(path)["summaries"]))
    assert spans == ([1, 2] if strategy == "hierarchical" else [1, 1])


def test_strategy__not_set_or_unknown__is_sliding_or_refused(service: Service) -> None:
    assert service.get(service.create(policy=POLICY))["policy"]["strategy"] == "sliding"
    body = {"model": "gpt-4o", "policy": {**POLICY, "strategy": "shuffling"}}
    assert service.post("conversations", body, status=400)["errors"][0]["attr"] == "policy.strategy"


# > "Trigger compaction when context reaches this fraction of max tokens (0–1)."
def test_threshold__reached__triggers_and_one_token_less_does_not(service: Service) -> None:
    size = sized(service, turns(1, 2))
    for limit, triggers in ((size, True), (size + 1, False)):
        path = with_limit(service, limit)
        assert (service.append(path, *turns(1, 2))["compaction"] is not None) is triggers
    service.work_off()


def test_threshold__not_set__is_75_percent_of_the_window(service: Service) -> None:
    told = service.get(service.create(policy=POLICY, context_window=None))
    assert (told["policy"]["threshold"], told["meter"]["limit"]) == (0.75, 96_000)


@pytest.mark.parametrize("threshold", [0, 1.01, -0.5])
def test_threshold__outside_of_its_range__is_refused(service: Service, threshold: float) -> None:
    body = {"model": "gpt-4o", "policy": {**POLICY, "threshold": threshold}}
    assert service.post("conversations", body, status=400)["errors"][0]["attr"] == "policy.threshold"


# > "Turns kept as they are, newest first (two messages a turn), while older messages remain to summarize."
@pytest.mark.parametrize(("turns_kept", "kept"), [(2, [4, 5]), (20, [])])
def test_preserve_recent_turns__older_messages_remain__newest_turns_stay(
    service: Service, turns_kept: int, kept: list[int]
) -> None:
    path = service.create(policy={**POLICY, "preserve_recent_turns": turns_kept}, context_window=None)
    numbers = list(range(6)) if turns_kept == 2 else list(range(25))
    service.append(path, *turns(*numbers))
    entry = service.compact(path)
    assert entry["to_position"] == 2 * (len(numbers) - turns_kept)
    assert service.context(path)["messages"][1:] == turns(*(kept or numbers[-20:]))


# > "A conversation shorter than that, over its threshold all the same, gives up its two oldest messages"
def test_preserve_recent_turns__conversation_is_shorter__gives_up_its_two_oldest_messages(service: Service) -> None:
    talk = turns(1, 2, 3)
    limit = sized(service, talk) - 20
    path = with_limit(service, limit)
    service.append(path, *talk)
    service.work_off()

    (entry,) = service.compactions(path)
    assert (entry["trigger"], entry["outcome"], entry["to_position"]) == ("threshold", "applied", 2)
    assert service.context(path)["messages"][1:] == talk[2:]
    assert tokens(service, path) < limit


# Two messages shorter than any summary would make the context longer: they stay, and nobody asks again at once.
def test_preserve_recent_turns__two_oldest_are_short__is_skipped_and_waits_for_growth(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    talk = [*turns(0, times=1), *turns(1, 2, 3)]
    limit = sized(service, talk) - 20
    path = with_limit(service, limit)
    service.append(path, *talk)
    service.work_off()

    (entry,) = service.compactions(path)
    assert (entry["outcome"], entry["to_position"]) == ("skipped", 2)
    before = tokens(service, path)
    service.append(path, user(4, 1), assistant(4, 1))
    service.work_off()
    assert len(models.calls(model)) == 1
    assert tokens(service, path) > before


# A context that does not even fit gives up as many kept turns as make it fit, in one compaction.
def test_preserve_recent_turns__context_does_not_fit__one_compaction_makes_it_fit(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY, context_window=4_000)
    service.append(path, *turns(*range(16), times=6), user(99, 1))
    service.work_off()
    context = service.context(path)
    assert len(models.calls(model)) == 1
    assert context["degraded"] is False
    assert context["fits"] is True


# > "the newest message is never summarized"
@pytest.mark.parametrize("count", [1, 2, 3])
def test_newest_message__any_length__is_never_summarized(service: Service, count: int) -> None:
    path = service.create(policy=POLICY, context_window=600)
    talk = turns(1, 2)[:count]
    service.append(path, *talk)
    entry = service.compact(path)
    assert entry["outcome"] == ("irreducible" if count == 1 else "applied")
    assert service.context(path)["messages"][-1] == talk[-1]


# > "Transparency logging level."
@pytest.mark.parametrize("level", [None, "full", "summary", "silent"])
def test_transparency__level__says_how_much_the_log_tells(
    service: Service, models: Control, model: str, level: str | None
) -> None:
    service.summarizer(models, models.script(model, "fixed_tokens:120"))  # too short to name everything
    path = service.create(policy={**POLICY, "transparency": level, "preserve_recent_turns": 1}, context_window=None)
    said = " ".join(f"agents_name_{number}" for number in range(100))
    service.append(path, {"role": "user", "content": "Go on."}, {"role": "assistant", "content": said})
    service.append(path, *turns(*range(12)))
    entry = service.compact(path)

    assert (entry["outcome"], entry["trigger"]) == ("applied", "manual")
    assert entry["tokens_in"] > entry["tokens_out"] > 0
    assert bool(entry["summary"]) is (level != "silent")
    assert bool(entry["entities"]) is (level != "silent")
    assert bool(entry["dropped_content"]) is (level == "full")
    (node,) = service.get(f"{path}/summaries?state=active")["data"]
    assert node["text"]  # the agent's summary, whatever the log tells


# > "Max compaction log entries retained in memory."
def test_log_retention__not_set__is_100_entries(service: Service) -> None:
    assert service.get(service.create(policy=POLICY))["policy"]["log_retention"] == 100


def test_log_retention__more_entries__older_ones_keep_their_numbers_only(service: Service) -> None:
    path = service.create(policy={**POLICY, "log_retention": 1, "preserve_recent_turns": 1})
    for number in range(3):
        service.append(path, *turns(2 * number, 2 * number + 1))
        service.compact(path)
    log = service.compactions(path)
    assert [entry["outcome"] for entry in log] == ["applied"] * 3
    assert [bool(entry["summary"]) for entry in log] == [False, False, True]
    assert all(entry["tokens_in"] for entry in log)
    assert service.get(f"{path}/stats")["compactions"] == 3


# > "Token budget for the rolling summary chain header."
def test_summary_chain__model_writes_too_much__stays_within_its_budget(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, ["fixed_tokens:2600", "fixed_tokens:2300", "fixed_tokens:1500"])
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "preserve_recent_turns": 1}, context_window=None)
    assert service.get(path)["policy"]["summary_chain_max_tokens"] == 2_000
    service.append(path, *turns(1, 2, 3, 4, times=80))
    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    assert len(entry["passes"]) > 1
    assert COUNTER.text(entry["summary"]) <= 2_000


def test_summary_chain__many_nodes__stay_within_their_budget_together(service: Service) -> None:
    policy = {**POLICY, "strategy": "hierarchical", "preserve_recent_turns": 1, "summary_chain_max_tokens": 500}
    path = service.create(policy=policy, context_window=None)
    for number in range(4):
        service.append(path, *turns(2 * number, 2 * number + 1, times=40))
        service.compact(path)
    nodes = service.get(f"{path}/summaries?state=active")["data"]
    assert sum(node["tokens"] for node in nodes) <= 500


# > "Target compression ratio for summaries (e.g. 8 = 8:1)."
@pytest.mark.parametrize("ratio", [None, 4])
def test_compression_ratio__of_the_span__is_the_length_the_model_is_asked_for(
    service: Service, models: Control, model: str, ratio: int | None
) -> None:
    service.summarizer(models, model)
    policy: dict[str, Any] = {**POLICY, "preserve_recent_turns": 1, "target_compression_ratio": ratio}
    path = service.create(policy=policy, context_window=None)
    service.append(path, *turns(1, 2, 3, times=40))
    entry = service.compact(path)
    (request,) = models.calls(model)
    assert f"Aim at {int(entry['tokens_in'] / (ratio or 8))} tokens" in asked(request)
    assert entry["compression_ratio"] == round(entry["tokens_in"] / entry["tokens_out"], 2)
    assert entry["compression_ratio"] > (ratio or 8) / 2


# > "Writes the summaries." "Model ID for summarization calls."
def test_model__of_the_policy__writes_the_summaries(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, f"other-{model}")
    path = service.create(policy={**POLICY, "preserve_recent_turns": 1, "summarizer_model": model})
    service.append(path, *turns(1, 2))
    entry = service.compact(path)
    assert (entry["method"], entry["model"]) == ("llm", model)
    assert [one["body"]["model"] for one in models.calls(model)] == [model]
    assert models.calls(f"other-{model}") == []


# > "falls back to the reflector's, the observer's or the feature-detection invoker"
def test_model__fails__the_next_one_writes(service: Service, models: Control, model: str) -> None:
    models.script(model, "status:401")
    service.summarizer(models, model, f"next-{model}")
    path = service.create(policy={**POLICY, "preserve_recent_turns": 1})
    service.append(path, *turns(1, 2))
    entry = service.compact(path)
    assert (entry["outcome"], entry["method"], entry["model"]) == ("applied", "llm", f"next-{model}")


# > "without any, and when a call fails or answers nothing, compaction writes extractive summaries"
@pytest.mark.parametrize("behaviour", [None, "status:401", "status:503", "empty", "blank", "none"])
def test_model__missing_failing_or_silent__summary_is_extractive_and_says_why(
    service: Service, models: Control, model: str, behaviour: str | None
) -> None:
    if behaviour:
        service.summarizer(models, models.script(model, behaviour))
    path = service.create(policy={**POLICY, "preserve_recent_turns": 1})
    service.append(path, *turns(1, 2, 3))
    entry = service.compact(path)

    assert (entry["outcome"], entry["method"]) == ("applied", "extractive")
    expected = {None: "no_model", "empty": "empty", "blank": "empty", "none": "empty"}
    if behaviour in expected:
        assert entry["fallback_reason"] == expected[behaviour]
    assert entry["fallback_reason"]
    assert "E1" in entry["summary"]
    assert service.context(path)["messages"][1:] == [user(3), assistant(3)]
