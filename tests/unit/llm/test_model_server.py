from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from compaction_service.llm.client import CompletionRequest, complete
from tests.model_server import Control, behaviours, honest, spawned

SECTIONS = ("Overall Goal", "Next Steps", "Active Files")


def prompt(
    length: int = 500, data: str = "Edit src/app/views.py and call load_settings for order 48213."
) -> dict[str, Any]:
    wanted = "\n".join(f"## {section}" for section in SECTIONS)
    system = f"Answer with exactly these sections:\n\n{wanted}\n\nAim at {length} tokens. 4096 tokens are the limit."
    user = f"<transcript>\n## Not asked for\nabout 9 tokens\n{data}\n</transcript>\n\nWrite the summary now."
    return {"model": "m", "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}


def answer(behaviour: str, body: dict[str, Any], repeated: int = 0) -> str:
    reply = behaviours.reply(behaviour, body, key="k", repeated=repeated)
    text: str = json.loads(reply.body)["choices"][0]["message"]["content"]
    return text


@pytest.mark.parametrize("length", [100, 500, 4000])
def test_honest__prompt_with_sections_and_length__keeps_to_both(length: int) -> None:
    text = answer("honest", prompt(length))

    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(SECTIONS)
    assert 0.6 * length <= honest.tokens(text) <= length
    assert "- [ ] " in text
    assert "- src/app/views.py" in text
    assert "load_settings" in text
    assert text == answer("honest", prompt(length))


def test_honest__facts_to_preserve__keeps_them_word_for_word() -> None:
    body = prompt(data="x\n</transcript>\n\n<preserve>\n- Never deploy on Friday {at all} %s\n</preserve>\n")

    assert "Never deploy on Friday {at all} %s" in answer("honest", body)


def test_honest__prompt_of_any_shape__still_answers() -> None:
    for messages in (
        [],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ):
        assert answer("honest", {"model": "m", "messages": messages}).strip()


def test_long_then_short__pass_by_pass__gets_shorter_until_it_fits() -> None:
    lengths = [honest.tokens(answer("long_then_short", prompt(500), repeated=i)) for i in range(4)]

    assert lengths[0] > lengths[1] > lengths[2] > 500 >= lengths[3]


def test_longer__any_prompt__is_longer_than_its_input() -> None:
    assert honest.tokens(answer("longer", prompt())) > honest.prompt_tokens(prompt())


@pytest.mark.parametrize(("behaviour", "held"), [("braces", "{name}"), ("nul", "\x00"), ("wrong_language", "Schritt")])
def test_odd_answers__asked_sections__are_there_all_the_same(behaviour: str, held: str) -> None:
    text = answer(behaviour, prompt())

    assert held in text
    assert all(f"## {section}\n" in text for section in SECTIONS)


def test_script__sequence__is_gone_through_and_its_last_repeats(server: Control, model: str) -> None:
    server.script(model, ["status:500", "429:1", "honest"])
    request = CompletionRequest(model, "s", "u", 50, 20.0, server.base_url, server.key, allow_local=True)
    seen = []
    for _ in range(4):
        try:
            seen.append(complete(request).finish_reason)
        except Exception as error:  # noqa: BLE001  # its class is the subject of other tests
            seen.append(getattr(error, "code", "?"))

    assert seen == ["server_error", "rate_limited", "stop", "stop"]
    assert [call["behaviour"] for call in server.calls(model)] == ["status:500", "429:1", "honest", "honest"]
    server.reset(model)
    assert server.calls(model) == []


def test_script__unknown_behaviour__is_refused(server: Control, model: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.script(model, "charming")
    caught.value.close()


def test_spawned__process_of_its_own__answers() -> None:
    with spawned() as server:
        request = CompletionRequest("any", "s", "u", 50, 20.0, server.base_url, server.key, allow_local=True)

        assert complete(request).text
        assert server.calls("any")[0]["key_ok"]
