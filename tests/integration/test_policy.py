"""The policy over HTTP: levels, when it triggers, what is kept, and what is tried again (semantics 2, 4, 5 and 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.integration.test_faults import LINE, assert_sound
from tests.integration.test_races import turn
from tests.model_server import Control

COUNTER = counter_for("o200k_base", 1.0)


def grow(service: Service, path: str, to: int) -> Any:
    """Append turns until the context has about `to` tokens, none of it more."""
    answer = None
    while (left := to - service.get(path)["meter"]["tokens"]) > 60:
        text = LINE * max(1, min(10, left // 60))
        answer = service.append(path, {"role": "user", "content": "Go on."}, {"role": "assistant", "content": text})
    return answer


def exactly(service: Service, path: str, tokens: int) -> Any:
    """Append one response that brings the context to exactly so many tokens; the answer of the append."""
    missing = tokens - service.get(path)["meter"]["tokens"]
    message = {"role": "assistant", "content": ""}
    rest = missing - COUNTER.message("openai", message)
    assert rest > 0
    message["content"] = " a" * rest
    assert COUNTER.message("openai", message) == missing
    return service.append(path, message)


def test_policy__three_levels__the_most_specific_wins_and_says_so(service: Service) -> None:
    service.patch("tenant", {"policy": {"threshold": 0.6, "keep_tool_results": 7}})
    path = service.create(policy={"threshold": 0.7})
    shown = service.get(path)
    assert (shown["policy"]["threshold"], shown["policy_sources"]["threshold"]) == (0.7, "conversation")
    assert (shown["policy"]["keep_tool_results"], shown["policy_sources"]["keep_tool_results"]) == (7, "tenant")
    assert shown["policy_sources"]["target"] == "default"
    service.append(path, *turn("One"), *turn("Two"), *turn("Three"))
    plan = service.post(f"{path}/compactions", {"dry_run": True}, status=200)["plan"]
    assert plan["span"] == {"from": 1, "to": 4}
    plan = service.post(f"{path}/compactions", {"dry_run": True, "preserve_recent_turns": 2}, status=200)["plan"]
    assert plan["span"] == {"from": 1, "to": 2}


def test_policy_patch__merges_and_null_unsets(service: Service) -> None:
    path = service.create(policy={"threshold": 0.7, "target": 0.25})
    service.patch(path, {"policy": {"target": None, "preserve_recent_turns": 3}})
    shown = service.get(path)
    assert (shown["policy"]["threshold"], shown["policy"]["target"]) == (0.7, 0.5)
    assert (shown["policy"]["preserve_recent_turns"], shown["policy_sources"]["target"]) == (3, "default")


@pytest.mark.parametrize(
    ("policy", "attr"),
    [
        ({"threshhold": 0.5}, "policy.threshhold"),
        ({"threshold": 0}, "policy.threshold"),
        ({"target": 1}, "policy.target"),
        ({"max_tokens": 0}, "policy.max_tokens"),
        ({"summary_sections": []}, "policy.summary_sections"),
        ({"reserve_output_tokens": 8000}, "policy.reserve_output_tokens"),
    ],
)
def test_policy__impossible__is_a_400_that_names_the_field(service: Service, policy: dict[str, Any], attr: str) -> None:
    path = service.create()
    for answer in (
        service.post("conversations", {"model": "gpt-4o", "context_window": 8000, "policy": policy}, status=400),
        service.patch(path, {"policy": policy}, status=400),
    ):
        assert [error["attr"] for error in answer["errors"]] == [attr]


def test_trigger__not_enabled__never_but_manual_works(service: Service) -> None:
    path = service.create(context_window=2000)
    grow(service, path, 5000)
    assert service.compactions(path) == []
    assert service.context(path)["degraded"] is True
    assert service.compact(path)["outcome"] == "applied"
    assert service.context(path)["degraded"] is False
    assert [entry["trigger"] for entry in service.compactions(path)] == ["manual"]


@pytest.mark.parametrize(
    ("policy", "limit", "at"),
    [
        ({}, 1600, 1600),  # reached
        ({"threshold": 0.5}, 1000, 1000),
        ({"preset": "navigator"}, 1500, 1501),  # exceeded; window - reserve is the smaller
        ({"preset": "navigator", "threshold": 0.6}, 1200, 1201),
        ({"max_tokens": 900}, 900, 901),
        ({"threshold": 1, "reserve_output_tokens": 300}, 1700, 1700),
    ],
)
def test_trigger__threshold__is_reached_or_exceeded_to_the_token(
    service: Service, policy: dict[str, Any], limit: int, at: int
) -> None:
    settings = {"reserve_output_tokens": 400} if not policy else {}
    path_below = service.create(context_window=2000, policy={"enabled": True, **settings, **policy})
    assert service.get(path_below)["meter"]["limit"] == limit
    grow(service, path_below, at - 40)
    assert exactly(service, path_below, at - 1)["compaction"] is None
    path_at = service.create(context_window=2000, policy={"enabled": True, **settings, **policy})
    grow(service, path_at, at - 40)
    done = exactly(service, path_at, at)
    assert done["compaction"]["trigger"] == "threshold"
    service.work_off()
    assert service.compactions(path_at)[0]["outcome"] == "applied"


def test_trigger__unanswered_request__waits_for_the_response(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True, "threshold": 0.5})
    grow(service, path, 1900)
    assert service.append(path, {"role": "user", "content": LINE * 6})["compaction"] is None
    assert service.get(path)["meter"]["tokens"] > 2000
    assert service.append(path, {"role": "assistant", "content": "Yes."})["compaction"]["trigger"] == "threshold"


def test_trigger__open_call__waits_for_its_result(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True, "threshold": 0.5, "mask_tool_results": False})
    grow(service, path, 1900)
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"x": "' + LINE * 6 + '"}'}}
    assert service.append(path, {"role": "assistant", "content": None, "tool_calls": [call]})["compaction"] is None
    result = {"role": "tool", "tool_call_id": "c1", "content": "done"}
    assert service.append(path, result)["compaction"]["trigger"] == "threshold"


def test_trigger__over_window_less_reserve__at_once(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True, "threshold": 0.5})
    grow(service, path, 1900)
    done = service.append(path, {"role": "user", "content": LINE * 60})
    assert done["compaction"]["trigger"] == "overflow"
    service.work_off()
    assert service.context(path)["messages"][-1]["content"] == LINE * 60
    assert_sound(service, path)


def test_trigger__patch_of_policy_or_model__is_looked_at_too(service: Service) -> None:
    path = service.create(context_window=4000)
    grow(service, path, 3300)
    service.patch(path, {"policy": {"enabled": True}})
    assert service.get(path)["compaction"]["state"] == "queued"


def test_trigger__creation_with_messages__is_looked_at_too(service: Service) -> None:
    path = service.create(context_window=1000, policy={"enabled": True}, messages=[*turn(LINE * 8), *turn(LINE * 8)])
    assert service.get(path)["compaction"]["state"] == "queued"
    service.work_off()
    assert service.compactions(path)[0]["outcome"] == "applied"


def test_irreducible__is_told_with_its_floor_and_not_tried_again_before_growth(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    system = "You are careful. " * 250  # nearly all of the limit by itself
    path = service.create(context_window=2000, policy={"enabled": True, "threshold": 0.5}, system=system)
    service.append(path, *turn("Hello"))
    service.work_off()
    [entry] = service.compactions(path)
    assert (entry["outcome"], entry["reason"]) == ("irreducible", "only_carried")
    assert entry["notes"][0]["floor_tokens"] == entry["context_before"]["tokens"] > 1000
    assert models.calls(model) == []
    for n in range(3):
        service.append(path, *turn(f"Small {n}"))
        service.work_off()
    assert len(service.compactions(path)) == 1
    service.append(path, *turn(LINE * 2), *turn("So"))  # more than a tenth of the limit
    service.work_off()
    assert len(service.compactions(path)) > 1


def test_irreducible__manual__answers_at_once_with_an_id(service: Service) -> None:
    path = service.create(messages=[{"role": "user", "content": "Hello"}])
    answer = service.post(f"{path}/compactions", status=200)
    assert (answer["status"], answer["outcome"], answer["joined"]) == ("succeeded", "irreducible", False)
    assert service.get(f"compactions/{answer['id']}")["outcome"] == "irreducible"


def test_gate__result_that_was_too_new_is_seen__tries_again_at_once(service: Service) -> None:
    """What can be covered is what counts, not how long the tail is."""
    path = service.create(context_window=2000, policy={"enabled": True, "mask_tool_results": False})
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    service.append(
        path,
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": LINE * 150},
    )
    service.work_off()
    assert [entry["outcome"] for entry in service.compactions(path)] == ["irreducible"]
    assert service.context(path)["degraded"] is True
    service.append(path, {"role": "assistant", "content": "Done."})
    service.work_off()
    assert [entry["outcome"] for entry in service.compactions(path)][:2] == ["irreducible", "applied"]
    assert service.context(path)["degraded"] is False


def test_gate__open_call_is_abandoned_by_the_append__tries_again_at_once(service: Service) -> None:
    """The append itself makes its exchange coverable: what it is about to write counts."""
    path = service.create(context_window=2000, policy={"enabled": True, "keep_last_user_request": False})
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    service.append(
        path,
        {"role": "assistant", "content": LINE * 150, "tool_calls": [call]},
        {"role": "user", "content": "Never mind."},
    )
    service.work_off()
    assert service.compactions(path)[-1]["reason"] == "protected"
    assert service.context(path)["degraded"] is True
    service.append(path, {"role": "assistant", "content": "As you wish."})
    service.work_off()
    assert service.compactions(path)[-1]["outcome"] == "applied"
    assert service.context(path)["degraded"] is False


def test_gate__long_request_that_was_carried_has_a_successor__tries_again_at_once(service: Service) -> None:
    """It goes with the next compaction, however little else that one covers."""
    path = service.create(context_window=3000, policy={"enabled": True, "preserve_recent_turns": 0})
    service.append(path, *turn("Hello"), {"role": "user", "content": LINE * 300})
    service.work_off()
    service.append(path, {"role": "assistant", "content": "Read."})
    service.work_off()
    service.append(path, {"role": "user", "content": "So?"})
    service.work_off()
    assert service.context(path)["degraded"] is False
    assert service.compactions(path)[-1]["outcome"] == "applied"


def test_gate__after_a_revert__waits_for_growth(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True})
    grow(service, path, 3400)
    service.work_off()
    [entry] = service.compactions(path)
    service.post(f"compactions/{entry['id']}/revert", status=200)
    service.append(path, *turn("Small"))
    assert service.work_off() == 0
    service.patch(path, {"policy": {"preserve_recent_turns": 2}})
    assert service.work_off() >= 1


def test_masking__brings_it_under_the_limit__no_summary_is_made(service: Service) -> None:
    path = service.create(context_window=4000, policy={"enabled": True, "keep_tool_results": 1})
    for n in range(6):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        service.append(path, {"role": "user", "content": f"Run {n}."})
        service.append(path, {"role": "assistant", "content": None, "tool_calls": [call]})
        service.append(path, {"role": "tool", "tool_call_id": f"c{n}", "content": LINE * 25})
        service.append(path, {"role": "assistant", "content": f"Ran {n}."})
    assert service.compactions(path) == []
    context = service.context(path)
    assert len(context["masked"]) >= 3
    shown = [m["content"] for m in context["messages"] if m["role"] == "tool"]
    assert shown[0] == "[Previous: used bash]"
    assert shown[-1] == LINE * 25
    original = service.get(f"{path}/messages/{context['masked'][0]}")
    assert original["message"]["content"] == LINE * 25
    assert_sound(service, path)


ODD = "nul \x00, lone \ud83d and \udc00, emoji 👩‍👩‍👧, {braces} %s %(x)d, \u2028 line, <|endoftext|>"

MORE = {"big": 12345678901234567890123, "f": 1.5}


def test_text__of_any_kind__comes_back_as_it_came(service: Service) -> None:
    call = {"id": "c\x00\ud83d", "type": "function", "function": {"name": "bash", "arguments": '{"x": "\\u0000"}'}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": ODD}], "name": "ann", "x_more": MORE},
        {"role": "assistant", "content": ODD, "tool_calls": [call], "reasoning_content": ODD},
        {"role": "tool", "tool_call_id": "c\x00\ud83d", "content": ODD + "n" * 1_000_000},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    path = service.create(context_window=1_000_000, system=ODD)
    service.append(path, *messages)
    listed = service.get(f"{path}/messages")["data"]
    assert [one["message"] for one in listed] == messages
    assert service.get(f"{path}/messages/3")["message"] == messages[2]
    assert service.context(path)["messages"] == [{"role": "system", "content": ODD}, *messages]
    assert service.get(path)["system"] == ODD
    response: Any = service.client.get(f"/v1/{path}/transcript")
    lines = b"".join(response.streaming_content).split(b"\n")
    assert [json.loads(line)["message"] for line in lines if line] == messages
    service.append(path, *turn("Next"))
    assert service.compact(path)["outcome"] == "applied"
    assert_sound(service, path)


def test_write__unknown_query_parameter__is_refused_and_does_nothing(service: Service) -> None:
    path = service.create()
    told = service.post(f"{path}/compactions?dry_run=true", status=400)
    assert (told["errors"][0]["code"], told["errors"][0]["attr"]) == ("unknown_parameter", "dry_run")
    assert service.compactions(path) == []


def test_context__spoken_answer_over_the_window__fits_by_the_count_of_what_is_sent(service: Service) -> None:
    path = service.create(context_window=2000)
    service.append(path, {"role": "user", "content": "Tell me a long story."})
    audio = {"id": "audio_1", "transcript": "The quick brown fox jumps over the lazy dog. " * 1500}
    service.append(path, {"role": "assistant", "content": None, "audio": audio})
    context = service.context(path)
    assert (context["fits"], context["degraded"]) == (True, True)
    assert context["meter"]["tokens"] <= 2000
    assert len(str(context["messages"])) < 12_000


def test_context__only_an_exchange_of_tools_that_is_too_long__is_a_summary_of_it(service: Service) -> None:
    path = service.create(context_window=2000)
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": f'{{"text": "{LINE * 300}"}}'}}
    service.append(
        path,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Written."},
    )
    context = service.context(path)
    assert (context["fits"], context["degraded"]) == (True, True)
    assert [message["role"] for message in context["messages"]] == ["user"]
    assert 0 < context["meter"]["tokens"] <= 2000
