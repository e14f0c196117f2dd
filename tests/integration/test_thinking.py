"""Signed thinking of the newest models: shown to the byte while nothing before it changed, else left out whole."""

from __future__ import annotations

import uuid
from typing import Any

from compaction_service.conversations.retokenizing import conversation_recount
from compaction_service.registry.selectors import model_get
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.invariants import audit
from tests.unit.engine.context_rules_anthropic import anthropic_violations
from tests.unit.engine.strategies_anthropic import REDACTED, flat, text

BINDING, OLDER = "claude-opus-5-5", "claude-opus-4-5"
POLICY = {"preserve_recent_turns": 1, "target": 0, "mask_tool_results": False, "keep_last_user_request": False}
Message = dict[str, Any]


def assistant(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def thinking(number: int) -> Message:
    return {"type": "thinking", "thinking": f"Step {number} needs some thought. " * 20, "signature": f"c2ln{number}"}


def round_(number: int) -> list[Message]:
    """A request, a call after some thinking, its result, an answer after more."""
    use = {"type": "tool_use", "id": f"a{number}", "name": "bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"a{number}", "content": f"line of {number}\n" * 150}
    return [
        {"role": "user", "content": f"Mend module {number}, please. " * 10},
        assistant(thinking(number), use),
        {"role": "user", "content": [result]},
        assistant(thinking(number + 100), REDACTED, text(f"Module {number} was missing a value. " * 10)),
    ]


def create(service: Service, *messages: Message, model: str = BINDING, policy: dict[str, Any] | None = None) -> str:
    return service.create(format="anthropic", model=model, messages=messages, policy={**POLICY, **(policy or {})})


def thoughts(service: Service, path: str) -> list[str]:
    """The signatures shown, in order; the context is valid, and the running sums are what a fresh count gives."""
    context = service.context(path)
    assert anthropic_violations(context["messages"], context["system"]) == []
    found: list[str] = []
    for message in context["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        found += [block["signature"] for block in content if block["type"] == "thinking"]
    if not context["degraded"]:
        with tenant_scope(service.tenant_id):
            counter = model_get(service.get(path)["model"]).counter
        assert audit(service.tenant_id, path.removeprefix("conversations/"), counter) == []
    return found


def signed(*numbers: int) -> list[str]:
    return [f"c2ln{number}" for number in numbers]


def test_compact__thinking_of_before__is_left_out_and_a_later_answer_keeps_its_own(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    assert thoughts(service, path) == signed(1, 101, 2, 102, 3, 103)
    before = service.get(path)["meter"]["tokens"]

    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    assert thoughts(service, path) == []
    assert service.get(path)["meter"]["tokens"] < before - entry["context_after"]["breakdown"]["summaries"]

    service.append(path, round_(4)[0])
    service.append(path, *round_(4)[1:3])
    service.append(path, round_(4)[3])
    assert thoughts(service, path) == signed(4, 104)


def test_revert__nothing_in_between__shows_the_thinking_again_to_the_byte(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    before = service.context(path)["messages"]

    entry = service.compact(path)
    service.post(f"compactions/{entry['id']}/revert", status=200)

    assert service.context(path)["messages"] == before
    assert thoughts(service, path) == signed(1, 101, 2, 102, 3, 103)


def test_revert__answers_since__no_thinking_is_left(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    entry = service.compact(path)
    service.append(path, *round_(4)[:1])
    service.append(path, *round_(4)[1:])
    assert thoughts(service, path) == signed(4, 104)

    service.post(f"compactions/{entry['id']}/revert", status=200)

    assert thoughts(service, path) == []


def test_revert__an_erasure_since__no_thinking_is_left(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    entry = service.compact(path)
    service.call("DELETE", f"{path}/messages/{11}")
    service.post(f"compactions/{entry['id']}/revert", status=200)

    assert thoughts(service, path) == []


def test_append__answer_to_the_context_before_the_compaction__goes_without_its_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3), round_(4)[0])
    old = service.context(path)["context_version"]
    service.compact(path)

    service.append(path, *round_(4)[1:3], context_version=old)
    assert thoughts(service, path) == []

    new = service.context(path)["context_version"]
    service.append(path, round_(4)[3], context_version=new)
    assert thoughts(service, path) == signed(104)


def test_append__first_after_the_compaction_without_a_version__may_be_of_before(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3), round_(4)[0])
    service.compact(path)

    service.append(path, *round_(4)[1:3])
    assert thoughts(service, path) == []
    service.append(path, round_(4)[3])
    assert thoughts(service, path) == signed(104)


def test_append__first_after_the_compaction_to_its_context__keeps_its_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3), round_(4)[0])
    service.compact(path)
    new = service.context(path)["context_version"]

    service.append(path, *round_(4)[1:], context_version=new)

    assert thoughts(service, path) == signed(4, 104)


def test_masking_step__leaves_out_the_thinking_up_to_it(service: Service) -> None:
    policy = {"mask_tool_results": True, "keep_tool_results": 1, "mask_min_reclaim_tokens": 0}
    path = create(service, *round_(1), policy=policy)
    assert thoughts(service, path) == signed(1, 101)
    service.append(path, *round_(2)[:2])
    assert thoughts(service, path) == signed(1, 101, 2)

    service.append(path, round_(2)[2])  # the first result was seen, and is not among the newest any more
    assert service.context(path)["masked"] == [3]
    assert thoughts(service, path) == []


def test_pin__of_a_masked_result__leaves_out_the_thinking(service: Service) -> None:
    policy = {"mask_tool_results": True, "keep_tool_results": 0, "mask_min_reclaim_tokens": 0}
    path = create(service, *round_(1), policy=policy)
    service.append(path, {"role": "user", "content": "And?"})
    service.append(path, assistant(thinking(7), text("Done.")))
    assert thoughts(service, path) == signed(7)

    service.patch(f"{path}/messages/3", {"pinned": True})
    assert thoughts(service, path) == []


def test_pin__that_changes_nothing_shown__leaves_thinking_alone(service: Service) -> None:
    path = create(service, *round_(1), *round_(2))
    service.patch(f"{path}/messages/1", {"pinned": True})
    assert thoughts(service, path) == signed(1, 101, 2, 102)


def test_patch__system_tools_or_model__leaves_out_the_thinking(service: Service) -> None:
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    for change in ({"system": "Be brief."}, {"tools": tools}, {"model": "claude-sonnet-5-5"}):
        path = create(service, *round_(1))
        service.patch(path, change)
        assert thoughts(service, path) == [], change


def test_patch__metadata_or_policy__leaves_thinking_alone(service: Service) -> None:
    path = create(service, *round_(1))
    service.patch(path, {"metadata": {"a": 1}, "policy": {"preserve_recent_turns": 3}})
    assert thoughts(service, path) == signed(1, 101)


def test_rewind__leaves_the_thinking_before_it_alone(service: Service) -> None:
    path = create(service, *round_(1), *round_(2))
    service.call("DELETE", f"{path}/messages?from=5")
    assert thoughts(service, path) == signed(1, 101)


def test_erasure__of_an_earlier_message__leaves_out_the_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2))
    service.call("DELETE", f"{path}/messages/1")
    assert thoughts(service, path) == []


def test_fork__with_the_same_beginning__keeps_the_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2))
    fork = service.post(f"{path}/fork", {"position": 5})
    assert thoughts(service, f"conversations/{fork['id']}") == signed(1, 101)


def test_fork__before_the_end_of_a_summary__leaves_out_the_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    service.compact(path)
    fork = service.post(f"{path}/fork", {"position": 4})
    assert thoughts(service, f"conversations/{fork['id']}") == []


def test_append__to_a_fork_and_its_context__keeps_its_thinking(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3))
    service.compact(path)
    for position in (4, 11):
        fork = f"conversations/{service.post(f'{path}/fork', {'position': position})['id']}"
        version = service.context(fork)["context_version"]
        service.append(
            fork, {"role": "user", "content": "And?"}, assistant(thinking(7), text("x")), context_version=version
        )
        assert thoughts(service, fork) == signed(7)


def test_degraded_context__shows_no_thinking(service: Service) -> None:
    path = service.create(
        format="anthropic",
        model=BINDING,
        context_window=1500,
        messages=[*round_(1), *round_(2)],
        policy={**POLICY, "reserve_output_tokens": 100},
    )
    assert service.context(path)["degraded"]
    assert thoughts(service, path) == []


def test_older_model__keeps_thinking_after_a_compaction(service: Service) -> None:
    path = create(service, *round_(1), *round_(2), *round_(3), model=OLDER)
    shown = flat(service.context(path)["messages"])
    service.compact(path)
    assert thoughts(service, path) == signed(3, 103)
    assert flat(service.context(path)["messages"])[-5:] == shown[-5:]


def test_recount__after_a_change_of_model__keeps_what_leaving_out_saves(service: Service) -> None:
    path = service.create(format="anthropic", model="gpt-4", messages=[*round_(1), *round_(2)], policy=POLICY)
    service.patch(path, {"model": BINDING})
    assert conversation_recount(service.tenant_id, uuid.UUID(path.removeprefix("conversations/")))
    assert thoughts(service, path) == []
