"""The preset `three_layer`, sentence by sentence of the lesson it was made from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.inprocess import Service
from tests.integration.presets.talk import asked, assistant, call, chars, result, turns, user
from tests.model_server import Control

POLICY = {"preset": "three_layer", "enabled": True}
FOCUS = "keep the API design decisions"


def shown_results(service: Service, path: str) -> dict[str, str]:
    """What the context shows of each tool result, by the id of its call."""
    messages = service.context(path)["messages"]
    return {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}


def transcript(service: Service, path: str) -> list[Any]:
    """The originals, line by line as they are downloaded."""
    answer = service.client.get(f"/v1/{path}/transcript")
    assert answer.status_code == 200
    text = b"".join(answer).decode()  # streamed
    return [json.loads(line)["message"] for line in text.split("\n") if line]


def long_talk(characters: int) -> list[Any]:
    """Two turns whose messages, as compact JSON, have exactly so many characters together; not all of them ASCII."""
    messages = turns(1, 2)
    filler = 'die Prüfung "läuft" über 東京\n'
    missing = characters - sum(chars(message) for message in messages)
    per_filler = chars({"content": filler * 2}) - chars({"content": filler})
    messages[0]["content"] += filler * (missing // per_filler) + "x" * (missing % per_filler)
    assert sum(chars(message) for message in messages) == characters
    return messages


# > "Schicht 1 · micro_compact (jede Runde still)": "Vor jedem LLM-Aufruf wird ausgeführt: alte tool_results außer den
# letzten 3 werden durch Platzhalter ersetzt"
# > "Die Simulation zeigt 10 Interaktionsrunden Schritt für Schritt, mit micro_compact vor jeder Runde. Beobachte wie
# alte tool_results zu [Previous: ...] werden, während die letzten 3 vollständig bleiben."
def test_micro__ten_rounds__all_but_the_newest_three_results_are_placeholders(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, user(0))
    for number in range(1, 11):
        service.append(path, call(number), result(number))

        shown = shown_results(service, path)
        old, new = range(1, max(1, number - 2)), range(max(1, number - 2), number + 1)
        assert [shown[f"call_{n}"] for n in old] == ["[Previous: used bash]"] * len(old)
        assert [shown[f"call_{n}"] for n in new] == [result(n)["content"] for n in new]


# > "tool_use_id": "toolu_01A", "content": "[Previous: used bash]"
def test_micro__placeholder__is_exactly_the_result_with_another_content(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, user(0))
    for number in range(1, 5):
        service.append(path, call(number), result(number))
    assert service.context(path)["messages"][2] == {**result(1), "content": "[Previous: used bash]"}
    assert service.context(path)["masked"] == [3]


def test_micro__placeholder_in_anthropics_format__is_the_block_of_the_lesson(service: Service) -> None:
    path = service.create(policy=POLICY, format="anthropic")
    service.append(path, {"role": "user", "content": "Mend the modules."})
    for letter in "ABCD":
        use = {"type": "tool_use", "id": f"toolu_01{letter}", "name": "bash", "input": {"command": "make"}}
        block = {"type": "tool_result", "tool_use_id": f"toolu_01{letter}", "content": f"line {letter}\n" * 40}
        service.append(path, {"role": "assistant", "content": [use]}, {"role": "user", "content": [block]})
    placeholder = {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "[Previous: used bash]"}
    assert service.context(path)["messages"][2] == {"role": "user", "content": [placeholder]}


# > "(jede Runde still)": nobody is asked, nothing is lost.
def test_micro__rounds__make_no_compaction_and_keep_the_originals(service: Service) -> None:
    path = service.create(policy={"preset": "three_layer"})
    talk = [user(0), *(message for n in range(1, 8) for message in (call(n), result(n)))]
    service.append(path, *talk)
    assert len(service.context(path)["masked"]) == 4
    assert service.compactions(path) == []
    assert transcript(service, path) == talk


# > "Ausnahme: read_file-Ergebnisse werden nie komprimiert."
# > PRESERVE_RESULT_TOOLS = {"read_file"}  # niemals komprimieren
def test_micro__read_file__is_never_replaced(service: Service) -> None:
    path = service.create(policy=POLICY)
    service.append(path, user(0))
    for number in range(1, 11):
        service.append(path, call(number, "read_file" if number % 2 else "bash"), result(number))

    shown = shown_results(service, path)
    assert [shown[f"call_{n}"] for n in (1, 3, 5, 7, 9)] == [result(n)["content"] for n in (1, 3, 5, 7, 9)]
    assert [shown[f"call_{n}"] for n in (2, 4, 6)] == ["[Previous: used bash]"] * 3


def test_micro__other_tools_to_preserve__replace_the_list(service: Service) -> None:
    path = service.create(policy={**POLICY, "preserve_tools": ["bash"], "keep_tool_results": 1})
    service.append(path, user(0), call(1, "read_file"), result(1), call(2), result(2), call(3), result(3))
    assert shown_results(service, path)["call_1"] == "[Previous: used read_file]"
    assert shown_results(service, path)["call_2"] == result(2)["content"]


# > "Die günstigste Schicht" comes first: where it is enough, no model is called.
def test_micro__brings_the_context_under_the_threshold__nothing_is_summarised(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 2_500})
    service.append(path, user(0))
    for number in range(1, 13):
        service.append(path, call(number), result(number, 30))
    assert service.work_off() == 0
    assert service.compactions(path) == []


# > "s06 setzt einen Schwellenwert (Standard: 50.000 Token)"
# > "1. Token schätzen: len(str(messages)) // 4 (grob, aber ausreichend)." "2. Schwellenwert überschritten"
@pytest.mark.parametrize(("characters", "triggers"), [(4 * 50_001 - 1, False), (4 * 50_001, True)])
def test_auto__characters_by_four__trigger_above_50000(service: Service, characters: int, triggers: bool) -> None:
    # Messages only: what system prompt and tools hold does not count.
    path = service.create(policy=POLICY, context_window=200_000, system="Be brief. " * 4_000)
    done = service.append(path, *long_talk(characters))
    assert (done["compaction"] is not None) is triggers
    service.work_off()


# > "vollständiges Transcript in .transcripts/transcript_TIMESTAMP.jsonl speichern (Backup)"
def test_auto__after_it__every_original_can_be_read(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 700}, system="You mend modules.")
    talk = [*turns(1), user(2), *(message for n in range(1, 7) for message in (call(n), result(n))), *turns(3)]
    for number in range(0, len(talk), 2):
        service.append(path, *talk[number : number + 2])
    service.work_off()

    assert service.compactions(path)[-1]["outcome"] == "applied"
    assert transcript(service, path) == talk  # unmasked
    (node,) = service.get(f"{path}/summaries?state=active")["data"]
    behind = service.get(f"summaries/{node['id']}/messages?limit=250")["data"]
    assert [one["message"] for one in behind] == talk[: node["to_position"]]


# > "3. LLM generiert eine Zusammenfassung des Gesprächsverlaufs."
# > "4. messages wird komplett durch einen "[compressed] SUMMARY..."-Eintrag ersetzt."
def test_auto__over_the_threshold__one_compressed_entry_replaces_all_messages(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "max_tokens": 700})
    talk = turns(1, 2, 3)
    service.append(path, *talk)
    service.work_off()

    (request,) = models.calls(model)
    assert all(message["content"].strip() in asked(request) for message in talk)
    (entry,) = service.compactions(path)
    (message,) = service.context(path)["messages"]
    assert message["role"] == "user"
    assert message["content"].startswith("[compressed] ")
    assert entry["summary"] in message["content"]
    assert (entry["outcome"], entry["to_position"]) == ("applied", 6)


# > "spezifische Tool-Ausgaben und Gesprächsdetails gehen verloren, nur die Zusammenfassung bleibt. Aber der Agent kann
# weiterarbeiten — das ist der Kerngewinn."
def test_auto__after_it__the_agent_goes_on(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 700})
    service.append(path, *turns(1, 2, 3))
    service.work_off()
    service.append(path, user(4, 1))
    service.append(path, call(4), result(4))
    service.append(path, assistant(4, 1))

    compressed, *rest = service.context(path)["messages"]
    assert compressed["content"].startswith("[compressed] ")
    assert rest == [user(4, 1), call(4), result(4), assistant(4, 1)]

    for number in range(5, 9):  # and again, over the next threshold: still one entry
        service.append(path, *turns(number))
        service.work_off()
    prefixed = [m for m in service.context(path)["messages"] if str(m["content"]).startswith("[compressed] ")]
    assert len(prefixed) == 1
    assert sum(entry["outcome"] == "applied" for entry in service.compactions(path)) >= 2


# What the model has not read yet is no part of the past.
def test_auto__in_the_middle_of_an_action__keeps_the_results_not_seen_yet(service: Service) -> None:
    path = service.create(policy={**POLICY, "max_tokens": 900})
    service.append(path, *turns(1, 2), user(3, 1), call(1), result(1, 30))
    service.work_off()
    compressed, *rest = service.context(path)["messages"]
    assert compressed["content"].startswith("[compressed] ")
    assert rest[-2:] == [call(1), result(1, 30)]


# > "Das Modell bekommt ein compact-Tool und kann es aktiv anfordern"
@pytest.mark.parametrize("fmt", ["openai", "anthropic"])
def test_manual__tool__takes_a_focus(service: Service, fmt: str) -> None:
    tool = service.get(f"tools/compact?format={fmt}")
    function = tool["function"] if fmt == "openai" else tool
    schema = function["parameters"] if fmt == "openai" else function["input_schema"]
    assert function["name"] == "compact"
    assert schema["properties"]["focus"]["type"] == "string"
    assert schema["required"] == []


# > "Funktioniert wie auto_compact, akzeptiert aber einen focus-Parameter, der die Zusammenfassung steuert."
# > tool_use("compact", focus="keep the API design decisions")
@pytest.mark.parametrize("enabled", [True, False])
def test_manual__with_focus__works_like_auto_and_steers_the_summary(
    service: Service, models: Control, model: str, enabled: bool
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={**POLICY, "enabled": enabled})
    talk = turns(1, 2, 3)
    service.append(path, *talk)  # far below the threshold
    entry = service.compact(path, focus=FOCUS)

    (request,) = models.calls(model)
    assert f"<focus>\n{FOCUS}\n</focus>" in asked(request)
    assert "Give the subject named in <focus> the most room" in asked(request)
    assert (entry["trigger"], entry["focus"], entry["outcome"]) == ("manual", FOCUS, "applied")
    (message,) = service.context(path)["messages"]
    assert message["content"].startswith("[compressed] ")
    assert transcript(service, path) == talk


# > "das Modell weiß, welche Phasen "abgeschlossen" sind, besser als eine heuristische Schwelle."
def test_manual__model_calls_the_tool__everything_before_the_call_is_compacted(
    service: Service, models: Control, model: str
) -> None:
    service.summarizer(models, model)
    path = service.create(policy={"preset": "three_layer"}, tools=[service.get("tools/compact?format=openai")])
    talk = [*turns(1, 2), user(3, 1)]
    service.append(path, *talk)
    compact = call(9, "compact")
    compact["tool_calls"][0]["function"]["arguments"] = json.dumps({"focus": FOCUS})
    assert service.append(path, compact)["compaction"]["trigger"] == "tool_call"
    done = {"role": "tool", "tool_call_id": "call_9", "content": "Compacted."}
    service.append(path, done)
    service.work_off()

    (entry,) = service.compactions(path)
    assert (entry["trigger"], entry["focus"], entry["outcome"]) == ("tool_call", FOCUS, "applied")
    assert FOCUS in asked(models.calls(model)[0])
    compressed, *rest = service.context(path)["messages"]
    assert compressed["content"].startswith("[compressed] ")
    assert rest[-2:] == [compact, done]
    service.append(path, assistant(3, 1))
    assert service.context(path)["messages"][-1] == assistant(3, 1)
