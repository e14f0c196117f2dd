"""The preset `navigator`, sentence by sentence of the wish it was made for."""

from __future__ import annotations

import math
from typing import Any

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.integration.presets.talk import asked, assistant, call, result, turns, user
from tests.model_server import Control

POLICY = {"preset": "navigator", "enabled": True}
HEADINGS = ["Overall Goal", "Next Steps", "Active Files"]


def tokens(service: Service, path: str) -> int:
    found: int = service.context(path)["meter"]["tokens"]
    return found


# > "There should be an options where you can specify a number of tokens" ...
# > "--context-compaction-max-tokens (to set the max size of the conversation before compaction"
def test_max_tokens__exceeded__compacts(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, *turns(1, 2, 3))
    size = tokens(service, path)

    assert service.patch(path, {"policy": {"max_tokens": size}})["compaction"]["live"] is None
    assert service.patch(path, {"policy": {"max_tokens": size - 1}})["compaction"]["live"] is not None
    service.work_off()
    assert [entry["outcome"] for entry in service.compactions(path)] == ["applied"]


# ... "and once the number of tokens in the conversation exceeds that limit (probably heuristically moderated by the
# number of tokens allowed in the models context window)" ... "default 80% of the detected models context window size"
def test_limit__not_set__is_80_percent_of_the_models_window(service: Service) -> None:
    meter = service.get(service.create(policy=POLICY, context_window=None))["meter"]
    assert (meter["window"], meter["window_source"], meter["limit"]) == (128_000, "registry", 102_400)


def test_limit__reached_but_not_exceeded__waits_for_one_token_more(service: Service) -> None:
    policy = {**POLICY, "reserve_output_tokens": 0}
    probe = service.create(policy=policy, context_window=100_000)
    service.append(probe, *turns(1, 2))
    size = tokens(service, probe)

    reached, exceeded = (service.create(policy=policy, context_window=math.ceil(n / 0.8)) for n in (size, size - 1))
    assert [service.get(path)["meter"]["limit"] for path in (reached, exceeded)] == [size, size - 1]
    assert service.append(reached, *turns(1, 2))["compaction"] is None
    assert service.append(exceeded, *turns(1, 2))["compaction"]["trigger"] == "threshold"
    service.work_off()


# > "upon surpassing the limit AFTER a completed response and before the role switches back to that of the user"
def test_trigger__request_surpasses_the_limit__waits_for_the_response(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 600})
    service.append(path, *turns(1))

    assert service.append(path, user(2, 20))["compaction"] is None
    assert tokens(service, path) > 600
    assert service.work_off() == 0
    assert service.append(path, assistant(2))["compaction"]["trigger"] == "threshold"
    service.work_off()
    assert service.compactions(path)[0]["outcome"] == "applied"


# > "before the model initiates it's next action in navigator mode"
def test_trigger__in_the_middle_of_an_action__waits_for_its_result(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 600})
    service.append(path, *turns(1, times=8))

    assert service.append(path, user(3, 20), call(3))["compaction"] is None
    assert tokens(service, path) > 600
    assert service.append(path, result(3))["compaction"]["trigger"] == "threshold"
    service.work_off()

    shown = service.context(path)["messages"]
    assert shown[1:] == [user(3, 20), call(3), result(3)]  # what the next action needs is there


# > "The model is sent a current copy of the conversation and asked to summarize it"
# > "Split the response into: Overall Goal / Next Steps (where it makes a checklist for itself on what is done and what
# is left to do) / Active files (any files current used in the context window)"
def test_summary__asked_of_the_model__reads_the_conversation_and_has_three_parts(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "max_tokens": 2_000})
    talk = turns(1, 2, 3, times=40)
    service.append(path, *talk)
    service.work_off()

    (request,) = models.calls(model)
    text = asked(request)
    for message in talk:
        assert message["content"].strip() in text
    positions = [text.index(f"## {heading}\n") for heading in HEADINGS]
    assert positions == sorted(positions)
    assert "`- [x] `" in text
    assert "`- [ ] `" in text

    (entry,) = service.compactions(path)
    assert (entry["method"], entry["model"]) == ("llm", model)
    goal, steps, files = entry["sections"]
    assert [goal["heading"], steps["heading"], files["heading"]] == HEADINGS
    assert {item["done"] for item in steps["items"]} == {True, False}
    assert {"- src/module_1.py", "- src/module_2.py"} <= set(files["text"].splitlines())


# > "(any files current used in the context window)"
def test_active_files__named_in_a_tool_call__are_listed(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, *turns(1), user(2), call(7), result(7), assistant(2), *turns(3))
    entry = service.compact(path)
    files = entry["sections"][2]["text"]
    assert "src/module_7.py" in files
    assert "src/module_3.py" not in files  # only in what stays


# > "Upon retrieving the response, we remove all aspects of the conversation prior to the penultimate turn of the
# conversation (e.g. the user's last request and the model's last response) and replace it with the summarized context"
def test_context__after_the_summary__is_summary_last_request_and_last_response(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "max_tokens": 900}, system="You mend modules.")
    service.append(path, *turns(1, 2, 3))
    service.work_off()

    context = service.context(path)
    (entry,) = service.compactions(path)
    system, summary, *rest = context["messages"]
    assert system == {"role": "system", "content": "You mend modules."}
    assert summary["role"] == "user"
    assert entry["summary"] in summary["content"]
    assert rest == turns(3)
    assert context["covered"] == {"from": 1, "to": 4}


def test_context__last_response_took_tools__last_request_stays_though_older(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, *turns(1), user(2), call(1), result(1), call(2), result(2), assistant(2))
    service.compact(path)
    assert service.context(path)["messages"][1:] == [user(2), call(2), result(2), assistant(2)]


def test_context__compacted_again__has_one_summary_of_everything_before(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 900})
    for number in range(1, 7):
        service.append(path, *turns(number))
        service.work_off()
    shown = service.context(path)["messages"]
    assert shown[-2:] == turns(6)
    assert len(service.context(path)["summaries"]) == 1
    assert sum(entry["outcome"] == "applied" for entry in service.compactions(path)) >= 2


# > "--enable-context-compaction (to enable the feature, default false)"
@pytest.mark.parametrize("policy", [{"preset": "navigator"}, {"preset": "navigator", "enabled": False}, {}])
def test_enabled__not_set__never_compacts_by_itself(service: Service, policy: dict[str, Any]) -> None:
    path = service.create(policy={**policy, "max_tokens": 100})
    assert service.append(path, *turns(1, 2, 3))["compaction"] is None
    assert service.work_off() == 0
    assert service.context(path)["messages"] == turns(1, 2, 3)
    assert service.patch(path, {"policy": {"enabled": True}})["compaction"]["live"] is not None
    service.work_off()


# > "--context-compaction-summary-tokens (the maximum size of the stored summary, default 4k tokens"
def test_summary_tokens__not_set__are_4k(service: Service) -> None:
    assert service.get(service.create(policy=POLICY))["policy"]["summary_max_tokens"] == 4096


# > "summaries bigger than this must be re-summarized to be smaller until they fit in the limit"
def test_summary__over_its_limit__is_summarised_again_until_it_fits(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, ["fixed_tokens:900", "fixed_tokens:600", "fixed_tokens:380", "fixed_tokens:150"])
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "summary_max_tokens": 220})
    service.append(path, *turns(1, 2, 3, 4))
    entry = service.compact(path)

    assert [one["kind"] for one in entry["passes"]] == ["summary", *["resummarize"] * 3]
    sizes = [one["tokens_out"] for one in entry["passes"]]
    assert sizes == sorted(sizes, reverse=True)
    assert entry["method"] == "llm"
    assert counter_for("o200k_base", 1.0).text(entry["summary"]) <= 220
    first, second, *_ = models.calls(model)
    assert user(1)["content"].strip() in asked(first)
    assert user(1)["content"].strip() not in asked(second)  # it reads the summary, not the conversation again
    assert "220 tokens are the limit" in asked(second)


def test_summary__model_never_gets_shorter__is_cut_and_fits_all_the_same(
    service: Service, models: Control, model: str
) -> None:
    models.script(model, "fixed_tokens:700")
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "summary_max_tokens": 220})
    service.append(path, *turns(1, 2, 3, 4))
    entry = service.compact(path)

    assert (entry["outcome"], entry["method"]) == ("applied", "llm")
    assert len(entry["passes"]) == 2  # the second gained nothing: a third would not either
    assert counter_for("o200k_base", 1.0).text(entry["summary"]) <= 220


# > "New flags necessary": what the three set is what the preset's policy holds.
def test_flags__all_three__map_to_fields_of_the_policy(service: Service) -> None:
    flags = {"enabled": True, "max_tokens": 20_000, "summary_max_tokens": 1_000}
    told = service.get(service.create(policy={"preset": "navigator", **flags}, context_window=None))
    assert {name: told["policy"][name] for name in flags} == flags
    assert told["policy"]["summary_sections"] == HEADINGS
    assert told["meter"]["limit"] == 20_000
