"""A conversation in Anthropic's format through the API: kept, shown, masked, compacted and reverted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction_service.registry.selectors import model_get
from compaction_service.tokens.messages import Counter, counter_for
from tests.inprocess import Service
from tests.transcripts import anthropic_transcript
from tests.unit.engine.context_rules import openai_violations
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies_anthropic import flat

SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
TOOLS = [{"name": "bash", "description": "Run a command.", "input_schema": {"type": "object"}}]
POLICY = {"preserve_recent_turns": 1, "target": 0, "keep_tool_results": 0, "mask_min_reclaim_tokens": 0}
COUNTER = counter_for("o200k_base", 1.0)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "bash", "input": {"command": f"cat src/{id_}.py"}}


def result(id_: str, lines: int = 40) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": f"line of {id_}\n" * lines, "is_error": False}


def thinking(number: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"Step {number}.", "signature": f"c2ln{number}"}


def round_(number: int) -> list[dict[str, Any]]:
    """A request, two calls at once, their results with a word of the user's, an answer."""
    a, b = f"a{number}", f"b{number}"
    return [
        {"role": "user", "content": f"Mend module {number}, please. " * 10},
        assistant(thinking(number), text("I look."), use(a), use(b)),
        user(result(a), result(b), text("Quickly!")),
        assistant(text(f"Module {number} was missing a value. " * 10)),
    ]


def create(service: Service, *messages: Any, **fields: Any) -> str:
    given = {"system": SYSTEM, "tools": TOOLS, "policy": POLICY, **fields}
    return service.create(format="anthropic", messages=messages, **given)


def sent(service: Service, path: str, counter: Counter = COUNTER) -> Any:
    """The context, checked: valid for the provider, system apart, and no dearer than the meter says."""
    context = service.context(path)
    assert anthropic_violations(context["messages"], context["system"]) == []
    parts = [counter.message("anthropic", message) for message in context["messages"]]
    fixed = counter.system("anthropic", context["system"]) + counter.tools("anthropic", context["tools"])
    assert fixed + sum(parts) <= context["meter"]["tokens"] <= context["meter"]["window"]
    assert context["fits"] is True
    return context


def test_context__anthropic_conversation__has_system_apart_and_the_messages_as_they_came(service: Service) -> None:
    path = service.create(format="anthropic", system=SYSTEM, tools=TOOLS, messages=round_(1))
    service.append(path, *round_(2))
    context = sent(service, path)

    assert (context["system"], context["tools"]) == (SYSTEM, TOOLS)
    assert context["messages"] == [*round_(1), *round_(2)]
    stored = service.get(f"{path}/messages")["data"]
    assert [one["message"] for one in stored] == context["messages"]
    assert [one["role"] for one in stored] == ["user", "assistant"] * 4


def test_context__other_format_without_equal__is_a_mismatch_that_names_it(service: Service) -> None:
    path = create(service, *round_(1))

    (error,) = service.get(f"{path}/context?format=openai", status=400)["errors"]
    assert (error["code"], error["attr"]) == ("format_mismatch", "format")
    assert "position 2: a part of type `thinking`" in error["detail"]
    assert service.get(f"{path}/context?format=anthropic")["fits"] is True


def test_context__other_format__is_the_same_conversation_under_an_etag_of_its_own(service: Service) -> None:
    path = create(service, user(text("go")), assistant(use("a"), use("b")), user(result("a", 1), result("b", 1)))

    own, other = service.context(path), service.context(path, format="openai")
    assert openai_violations(other["messages"]) == []
    assert [message["role"] for message in other["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert (other["system"], other["tools"][0]["function"]["parameters"]) == (None, TOOLS[0]["input_schema"])
    assert other["meter"] == own["meter"]
    assert other["context_version"] == f"{own['context_version']}-uncounted"  # its usage is of another provider
    tags = {service.client.get(f"/v1/{path}/context{query}").headers["ETag"] for query in ("", "?format=openai")}
    assert len(tags) == 2


def test_context__openai_conversation_compacted__is_valid_in_anthropic_format(service: Service) -> None:
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    path = service.create(system="Be brief.", tools=[tool], policy=POLICY)
    for number in range(3):
        call = {"id": f"a{number}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        service.append(
            path,
            {"role": "user", "content": f"Mend module {number}, please. " * 30},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "found " * 300},
            {"role": "assistant", "content": f"Module {number} was missing a value. " * 30},
        )
    assert service.compact(path)["outcome"] == "applied"

    context = service.context(path, format="anthropic")
    assert context["summaries"]
    assert (context["system"], context["tools"]) == (
        "Be brief.",
        [{"name": "bash", "input_schema": {"type": "object"}}],
    )
    assert anthropic_violations(context["messages"], context["system"]) == []


@pytest.mark.parametrize(
    ("fields", "attr"),
    [
        ({"system": {"role": "system", "content": "x"}}, "system"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}, {"name": "f"}]}, "tools.0.type"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "f"}]}, "tools.1.input_schema"),
        ({"messages": [user(text("hi")), {"role": "tool", "content": "x"}]}, "messages.1.role"),
        ({"messages": [user(text("hi")), user(result("a"))]}, "messages.1.content.0.tool_use_id"),
    ],
)
def test_create__what_the_api_would_refuse__names_the_place(service: Service, fields: Any, attr: str) -> None:
    body = {"model": "claude-sonnet-4-5", "format": "anthropic", **fields}

    (error,) = service.post("conversations", body, status=400)["errors"]
    assert error["attr"] == attr


def test_append__in_every_step__leaves_what_was_shown_block_by_block(service: Service) -> None:
    path = service.create(format="anthropic", system="Be brief.", policy={"mask_tool_results": False})
    shown: list[Any] = []
    for message in [assistant(text("Hello!")), *round_(1), user(text("And")), user(text("now?")), *round_(2)]:
        service.append(path, message)
        after = flat(sent(service, path)["messages"])
        assert after[: len(shown)] == shown
        shown = after


def test_append__results_seen__are_masked_one_by_one_in_place(service: Service) -> None:
    path = create(service, *round_(1))
    context = sent(service, path)

    assert context["masked"] == [3]
    assert context["messages"][2] == user(
        *({**result(id_), "content": "[Previous: used bash]"} for id_ in ("a1", "b1")), text("Quickly!")
    )


def test_append__second_result_of_a_message_grows_old__is_masked_beside_the_first(service: Service) -> None:
    policy = {"keep_tool_results": 1, "mask_min_reclaim_tokens": 0}
    path = create(service, user(text("go")), assistant(use("a"), use("b")), policy=policy)
    service.append(path, user(result("a"), result("b")), assistant(text("Both are read.")))
    first = sent(service, path)["messages"][2]["content"]
    assert [block["content"] for block in first] == ["[Previous: used bash]", result("b")["content"]]

    service.append(path, user(text("more")), assistant(use("c")), user(result("c")), assistant(text("Read.")))
    both = sent(service, path)["messages"][2]["content"]
    assert [block["content"] for block in both] == ["[Previous: used bash]"] * 2


def test_append__request_that_leaves_a_call_open__is_counted_with_its_synthetic_result(service: Service) -> None:
    path = create(service, user(text("go")), assistant(use("a"), use("b")), user(result("a", 1), text("And b?")))
    context = sent(service, path)
    assert [block["type"] for block in context["messages"][-1]["content"]] == ["tool_result", "tool_result", "text"]

    service.append(path, user(result("b", 1)))
    assert sent(service, path)["messages"][-1] == user(result("a", 1), result("b", 1), text("And b?"))


def test_compaction__without_a_model__covers_and_reverts_byte_by_byte(service: Service) -> None:
    path = create(service, *(message for number in range(6) for message in round_(number)))
    before = sent(service, path)
    done = service.compact(path)
    after = sent(service, path)

    assert (done["outcome"], done["method"]) == ("applied", "extractive")
    assert after["meter"]["tokens"] < before["meter"]["tokens"]
    assert "<conversation_summary>" in after["messages"][0]["content"][0]["text"]
    assert after["system"] == SYSTEM
    assert after["messages"][-1] == before["messages"][-1]

    service.post(f"compactions/{done['id']}/revert", status=200)
    reverted = sent(service, path)
    assert json.dumps(reverted["messages"]) == json.dumps(before["messages"])
    assert reverted["meter"]["tokens"] == before["meter"]["tokens"]


def test_context__that_does_not_fit__is_degraded_and_valid(service: Service) -> None:
    path = create(service, assistant(text("Hello!")), context_window=1500)
    for number in range(8):
        service.append(path, *round_(number))
        service.append(path, assistant(text("Still here.")))

    assert sent(service, path)["degraded"] is True


def test_transcript__appended_turn_by_turn_and_compacted__is_always_valid(service: Service) -> None:
    joined = anthropic_transcript("pi_mono", most=120)
    path = service.create(format="anthropic", model="claude-sonnet-4-5", system=joined.system, context_window=12_000)
    for start in range(0, len(joined.messages), 12):
        service.append(path, *joined.messages[start : start + 12])
        context = service.context(path)
        assert anthropic_violations(context["messages"], context["system"]) == []
    done = service.compact(path)

    context = service.context(path)
    assert done["outcome"] == "applied"
    assert anthropic_violations(context["messages"], context["system"]) == []


def test_degraded_context__that_begins_with_the_assistant__counts_what_is_shown_before_it(service: Service) -> None:
    path = service.create(
        format="anthropic",
        model="claude-opus-4-5",
        context_window=600,
        policy={"reserve_output_tokens": 100, "preserve_recent_turns": 0},
        messages=[
            user(text("word " * 900)),
            assistant(text("Seen.")),
            {"role": "user", "content": "And now? " * 100},
        ],
    )
    service.patch(f"{path}/messages/1", {"pinned": True})
    context = service.context(path)
    counter = model_get("claude-opus-4-5").counter

    assert context["degraded"]
    assert [message["role"] for message in context["messages"]] == ["user", "assistant", "user"]
    assert "begins with the assistant" in context["messages"][0]["content"]
    raw = counter.system("anthropic", None) + sum(counter.message("anthropic", one) for one in context["messages"])
    assert raw * counter.factor <= context["meter"]["tokens"] <= 500
