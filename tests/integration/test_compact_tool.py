"""The compaction that a model asks for by calling the compact tool: over HTTP, with the worker's code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction_service.compactions import jobs
from tenants.scope import tenant_scope
from tests.conftest import Member
from tests.inprocess import Service
from tests.integration.conversations.drive import texts_of
from tests.model_server import Control

OFF = {"enabled": False, "keep_last_user_request": False, "target": 0}


def turns(count: int) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"Step {n}: src/part_{n}.py costs {n} euros. " * 12}
        for n in range(count)
        for role in ("user", "assistant")
    ]


def calls_compact(fmt: str, focus: str = "prices", id_: str = "c1") -> dict[str, Any]:
    if fmt == "anthropic":
        block = {"type": "tool_use", "id": id_, "name": "compact", "input": {"focus": focus}}
        return {"role": "assistant", "content": [{"type": "text", "text": "Enough of that."}, block]}
    function = {"name": "compact", "arguments": json.dumps({"focus": focus})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def result(fmt: str, id_: str = "c1") -> dict[str, Any]:
    if fmt == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": "Done."}]}
    return {"role": "tool", "tool_call_id": id_, "content": "Done."}


def create(service: Service, fmt: str = "openai", **fields: Any) -> str:
    tool = service.get(f"tools/compact?format={fmt}")
    return service.create(**{"format": fmt, "tools": [tool], "policy": OFF, **fields})


@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
def test_call__automatic_compaction_off__covers_all_before_its_exchange_with_its_focus(
    service: Service, models: Control, model: str, fmt: str
) -> None:
    service.summarizer(models, model)
    path = create(service, fmt)
    service.append(path, *turns(3), {"role": "user", "content": "Go on."})

    done = service.append(path, calls_compact(fmt))
    answered = service.append(path, result(fmt))
    service.work_off()

    assert (done["compaction"]["status"], done["compaction"]["trigger"]) == ("queued", "tool_call")
    assert answered["compaction"] is None
    entry = service.get(f"compactions/{done['compaction']['id']}")
    assert (entry["outcome"], entry["trigger"], entry["requested_by"]) == ("applied", "tool_call", "model")
    assert (entry["from_position"], entry["to_position"]) == (1, 7)
    assert entry["focus"] == "prices"
    assert ["prices" in json.dumps(call["body"]) for call in models.calls(model)] == [True]
    context = service.context(path)
    assert context["covered"] == {"from": 1, "to": 7}
    service.append(path, {"role": "assistant", "content": "On we go."})


def test_call__tools_without_it__is_an_ordinary_call(service: Service) -> None:
    path = service.create(policy=OFF)
    service.append(path, *turns(3))

    assert service.append(path, calls_compact("openai"))["compaction"] is None


def test_tools__put_in_and_taken_out_by_patch__decide(service: Service) -> None:
    path = create(service)
    service.append(path, *turns(3))
    tools = service.get(path)["tools"]

    service.patch(path, {"tools": None})
    assert service.append(path, calls_compact("openai", id_="c1"), result("openai", "c1"))["compaction"] is None
    service.patch(path, {"tools": tools})
    assert service.append(path, calls_compact("openai", id_="c2"))["compaction"]["trigger"] == "tool_call"


def test_call__in_the_messages_of_a_creation__counts_too(service: Service) -> None:
    path = create(service, messages=[*turns(2), calls_compact("openai")])

    [entry] = service.compactions(path)
    assert (entry["trigger"], entry["focus"]) == ("tool_call", "prices")


def test_call__nothing_before_it__is_irreducible_and_calls_no_model(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = create(service)

    alone = service.append(path, calls_compact("openai"))
    service.work_off()

    entry = service.get(f"compactions/{alone['compaction']['id']}")
    assert (entry["outcome"], entry["passes"], entry["focus"]) == ("irreducible", [], "prices")
    assert models.calls(model) == []


def test_call__while_one_is_queued__joins_with_its_parameters_and_priority(service: Service) -> None:
    path = create(service)
    service.append(path, *turns(3))
    asked = service.post(f"{path}/compactions", {"focus": "gates", "up_to": 2}, status=202)

    joined = service.append(path, calls_compact("openai"))["compaction"]
    service.work_off()

    assert joined["id"] == asked["id"]
    [entry] = service.compactions(path)
    assert (entry["focus"], entry["to_position"], entry["trigger"]) == ("prices", 6, "manual")


def test_request__joins_a_queued_call__takes_the_place_of_its_span_too(service: Service) -> None:
    path = create(service)
    called = service.append(path, *turns(3), calls_compact("openai"), result("openai"))["compaction"]

    asked = service.post(f"{path}/compactions", {"up_to": 2}, status=202)
    service.work_off()

    assert (asked["id"], asked["joined"]) == (called["id"], True)
    assert [entry["to_position"] for entry in service.compactions(path)] == [2]


def test_call__while_one_runs__follows_it(service: Service) -> None:
    path = create(service)
    service.append(path, *turns(3))
    service.post(f"{path}/compactions", {"up_to": 2}, status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)

    joined = service.append(path, calls_compact("openai"), result("openai"))["compaction"]
    jobs.run(claim)
    service.work_off()

    first, second = service.compactions(path)
    assert joined["id"] == first["id"]
    assert (first["trigger"], first["to_position"]) == ("manual", 2)
    assert (second["trigger"], second["requested_by"], second["focus"]) == ("tool_call", "model", "prices")
    assert (second["from_position"], second["to_position"], second["outcome"]) == (3, 6, "applied")


def test_call__arguments_that_are_no_json__compacts_without_a_focus(service: Service) -> None:
    path = create(service)
    service.append(path, *turns(3))
    message = calls_compact("openai")
    message["tool_calls"][0]["function"]["arguments"] = '{"focus": "pri'

    done = service.append(path, message)
    service.work_off()

    entry = service.get(f"compactions/{done['compaction']['id']}")
    assert (entry["outcome"], entry["focus"]) == ("applied", None)


def test_call__with_the_context_over_its_limit_too__is_one_compaction(service: Service) -> None:
    path = create(service, context_window=1500, policy={**OFF, "enabled": True})
    service.append(path, {"role": "user", "content": "word " * 400})

    done = service.append(path, {"role": "assistant", "content": "word " * 700}, calls_compact("openai"))

    assert done["compaction"]["trigger"] == "tool_call"
    service.work_off()
    assert len([e for e in service.compactions(path) if e["trigger"] == "tool_call"]) == 1


def test_focus__its_call_joined_a_compaction_of_the_threshold__goes_with_the_message(
    service: Service, tenant: Member
) -> None:
    path = create(service, policy={**OFF, "enabled": True, "max_tokens": 300})
    queued = service.append(path, *turns(5))["compaction"]
    joined = service.append(path, calls_compact("openai", "zebra"))
    assert (joined["compaction"]["id"], joined["compaction"]["trigger"]) == (queued["id"], "threshold")
    assert service.get(f"compactions/{queued['id']}")["focus"] == "zebra"

    service.call("DELETE", f"{path}/messages?from={joined['messages'][0]['position']}")

    assert service.get(f"compactions/{queued['id']}")["focus"] is None
    service.work_off()
    assert service.get(f"compactions/{queued['id']}")["outcome"] == "applied"
    assert "zebra" not in texts_of(tenant)


def test_focus__of_the_second_of_two_calls__goes_with_it_and_the_model_never_sees_it(
    service: Service, tenant: Member, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = create(service)
    service.append(path, *turns(5))
    first = service.append(path, calls_compact("openai", "prices"), result("openai"))
    second = service.append(path, calls_compact("openai", "zebra", "c2"))
    assert second["compaction"]["id"] == first["compaction"]["id"]

    service.call("DELETE", f"{path}/messages?from={second['messages'][0]['position']}")
    service.work_off()

    assert service.get(f"compactions/{first['compaction']['id']}")["outcome"] == "applied"
    assert "zebra" not in texts_of(tenant) + json.dumps([call["body"] for call in models.calls(model)])


def test_focus__of_a_call_that_waits_for_a_running_one__goes_with_its_message(service: Service, tenant: Member) -> None:
    path = create(service)
    service.append(path, *turns(3))
    service.post(f"{path}/compactions", {"up_to": 2}, status=202)
    claim = service.claim()
    assert claim is not None
    with tenant_scope(service.tenant_id):
        jobs.begin(claim)
    called = service.append(path, calls_compact("openai", "zebra"), result("openai"))

    service.call("DELETE", f"{path}/messages/{called['messages'][0]['position']}")

    assert "zebra" not in texts_of(tenant)
    jobs.run(claim)
    service.work_off()
    assert [entry["outcome"] for entry in service.compactions(path)] == ["applied", "applied"]
    assert "zebra" not in texts_of(tenant)


def test_focus__of_another_call_than_the_erased_one__stays(service: Service) -> None:
    path = create(service)
    first = service.append(path, *turns(3), calls_compact("openai", "zebra"), result("openai"))
    service.work_off()
    service.append(path, *turns(3), calls_compact("openai", "prices", "c2"), result("openai", "c2"))

    service.call("DELETE", f"{path}/messages/{first['messages'][-2]['position']}")
    service.work_off()

    assert [entry["focus"] for entry in service.compactions(path)] == [None, "prices"]


def test_focus__of_a_request_that_joined_the_call__is_no_text_of_the_message(service: Service) -> None:
    path = create(service)
    called = service.append(path, *turns(3), calls_compact("openai"))
    service.post(f"{path}/compactions", {"focus": "gates"}, status=202)

    service.call("DELETE", f"{path}/messages?from={called['messages'][-1]['position']}")

    assert service.get(f"compactions/{called['compaction']['id']}")["focus"] == "gates"


@pytest.mark.parametrize(("held", "focus"), [(False, None), (True, "zebra")])
def test_fork__focus__comes_along_only_with_the_message_it_is_of(
    service: Service, held: bool, focus: str | None
) -> None:
    path = create(service)
    called = service.append(path, *turns(5), calls_compact("openai", "zebra"), result("openai"))
    service.work_off()
    position = called["messages"][-2]["position"]

    forked = service.post(f"{path}/fork", {"position": position if held else position - 1})

    fork = f"conversations/{forked['id']}"
    [entry] = service.compactions(fork)
    assert (entry["outcome"], entry["focus"]) == ("applied", focus)
    service.call("DELETE", f"{fork}/messages?from={position - 1}")
    assert [entry["focus"] for entry in service.compactions(fork)] == [None]
    assert [entry["focus"] for entry in service.compactions(path)] == ["zebra"]
