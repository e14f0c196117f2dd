"""A tenant's redaction, through the job: nothing secret reaches a model or the log; the originals stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction_service.compactions.models import Compaction, Status
from tenants.scope import tenant_scope
from tests.footprint import rows_of
from tests.inprocess import Service
from tests.model_server import Control

KEY = "sk-proj-q7Wm2Zr9Xk4Lp8Vt3Nb6Hs1Jd5Fg0Yc2"
MAIL = "ann.lee@mail.example"
CARD = "4111 1111 1111 1111"
SECRETS = (KEY, MAIL, CARD)
POLICY = {"preserve_recent_turns": 1, "target": 0, "summary_max_tokens": 600}


def _talk() -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": json.dumps({"to": MAIL})}}
    turns: list[Any] = [
        {"role": "user", "content": f"Use the key {KEY}. Charge the card {CARD} and tell {MAIL}. " + "And more. " * 40},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"sent to {MAIL} with {KEY}"},
        {"role": "assistant", "content": f"I told {MAIL}. " + "It is done. " * 40},
    ]
    for n in range(4):
        turns += [
            {"role": "user", "content": f"Request {n}: mend src/module_{n}.py. " * 20},
            {"role": "assistant", "content": f"Module {n} is mended; {MAIL} knows. " * 20},
        ]
    return turns


def _log(service: Service) -> str:
    """All that is stored of compactions."""
    rows = rows_of(service.tenant_id)
    return json.dumps([rows[name] for name in ("compactions_compaction", "compactions_pass", "compactions_summary")])


@pytest.mark.parametrize("with_model", [True, False])
def test_redaction__on__no_secret_reaches_the_model_or_the_log(
    service: Service, models: Control, model: str, with_model: bool
) -> None:
    service.patch("tenant", {"redaction": True})
    if with_model:
        service.summarizer(models, model)
    path = service.create(policy=POLICY, messages=_talk())
    entry = service.compact(path, focus=f"what {MAIL} was told", instructions=f"never name {KEY}")
    assert (entry["outcome"], entry["method"]) == ("applied", "llm" if with_model else "extractive")
    counts = next(note["redacted"] for note in entry["notes"] if "redacted" in note)
    assert counts == {"api_key": 2, "card": 1, "email": counts["email"]}
    assert counts["email"] >= 4
    for secret in SECRETS:
        assert secret not in _log(service), secret
        assert secret not in json.dumps(models.calls(model)), secret
    originals = json.dumps(service.get(f"{path}/messages?limit=250")["data"])
    assert all(secret in originals for secret in SECRETS)


def test_redaction__turned_on_later__the_summary_before_it_is_redacted_too(
    service: Service, models: Control, model: str
) -> None:
    path = service.create(policy=POLICY, messages=_talk())
    assert any(secret in service.compact(path)["summary"] for secret in SECRETS)  # extractive, as it was said
    service.patch("tenant", {"redaction": True})
    service.summarizer(models, model)
    service.append(path, *_talk()[4:])
    assert service.compact(path)["outcome"] == "applied"
    assert models.calls(model)
    assert not any(secret in json.dumps(models.calls(model)) for secret in SECRETS)


def test_redaction__cancelled_before_it_ran__the_focus_is_redacted_in_the_entry(service: Service) -> None:
    service.patch("tenant", {"redaction": True})
    path = service.create(policy=POLICY, messages=_talk())
    asked = service.post(f"{path}/compactions", {"focus": f"ask {MAIL}"}, status=202)
    service.post(f"compactions/{asked['id']}/cancel", status=200)
    assert service.get(f"compactions/{asked['id']}")["focus"] == "ask [redacted: email]"


def test_redaction__live_or_to_follow__shows_and_stores_nothing_secret(service: Service) -> None:
    service.patch("tenant", {"redaction": True})
    path = service.create(policy={**POLICY, "instructions": f"write to {MAIL}"}, messages=_talk())
    asked = {"focus": f"ask {MAIL}", "instructions": f"never name {KEY}"}
    queued = service.post(f"{path}/compactions", asked, status=202)
    for _ in range(2):  # the first, and one that joins it
        assert (queued["focus"], queued["instructions"]) == ("ask [redacted: email]", "never name [redacted: api_key]")
        assert queued["policy"]["instructions"] == "write to [redacted: email]"
        queued = service.post(f"{path}/compactions", {**asked, "strategy": "hybrid"}, status=202)
    assert queued["joined"]
    with tenant_scope(service.tenant_id):
        Compaction.objects.update(status=Status.RUNNING)
    service.post(f"{path}/compactions", asked, status=202)  # kept to follow the running one
    with tenant_scope(service.tenant_id):
        kept = Compaction.objects.values_list("follow_up", flat=True).get()
    assert kept is not None
    assert kept["focus"] == "ask [redacted: email]"
    assert not any(secret in _log(service) for secret in SECRETS)
    assert MAIL in service.get(path)["policy"]["instructions"]  # a setting stays as it was made
    service.post(f"compactions/{queued['id']}/cancel", status=200)


def test_redaction__focus_of_the_compact_tool__is_redacted_from_the_start(service: Service) -> None:
    service.patch("tenant", {"redaction": True})
    path = service.create(policy=POLICY, tools=[service.get("tools/compact")], messages=_talk())
    function = {"name": "compact", "arguments": json.dumps({"focus": f"what {MAIL} was told"})}
    call = {"id": "c9", "type": "function", "function": function}
    service.append(
        path, {"role": "user", "content": "Now."}, {"role": "assistant", "content": None, "tool_calls": [call]}
    )
    live = service.get(path)["compaction"]["live"]
    assert service.get(f"compactions/{live}")["focus"] == "what [redacted: email] was told"
    assert MAIL not in _log(service)


def test_redaction__name_of_a_file_or_a_policys_instructions__reach_no_model_and_no_log(
    service: Service, models: Control, model: str
) -> None:
    service.patch("tenant", {"redaction": True})
    service.summarizer(models, model)
    file = {"type": "file", "file": {"filename": f"{MAIL}.pdf", "file_data": "data:application/pdf;base64,AAAA"}}
    talk = [{"role": "user", "content": [file, {"type": "text", "text": "Read it. " * 40}]}, *_talk()[1:]]
    path = service.create(policy={**POLICY, "instructions": f"never name {KEY}"}, messages=talk)
    entry = service.compact(path)
    assert entry["outcome"] == "applied"
    assert "file [redacted: email]" in json.dumps(models.calls(model))
    assert entry["policy"]["instructions"] == "never name [redacted: api_key]"
    for secret in SECRETS:
        assert secret not in json.dumps(models.calls(model)), secret
        assert secret not in _log(service), secret


def test_redaction__off__nothing_is_taken_out(service: Service, models: Control, model: str) -> None:
    service.summarizer(models, model)
    path = service.create(policy=POLICY, messages=_talk())
    entry = service.compact(path)
    assert not any("redacted" in note for note in entry["notes"])
    assert KEY in json.dumps(models.calls(model))
