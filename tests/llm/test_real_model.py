"""Answers nobody scripted: a model too small to summarise well, so bounds and fallbacks have to hold (semantics 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from django.conf import settings
from rich.console import Console
from rich.table import Table

from compaction_service.engine.summary.accept import Reason
from compaction_service.llm.errors import CODES
from compaction_service.local import transcripts
from compaction_service.tokens.messages import counter_for
from tests.inprocess import Service
from tests.invariants import audit, bound_problems, chain_problems, context_problems
from tests.llm.conftest import Server
from tests.transcripts import steps

pytestmark = [pytest.mark.llm, pytest.mark.timeout(3600)]
COUNTER = counter_for("o200k_base", 1.0)
FILE = Path(__file__).resolve().parents[1] / "data/airline.jsonl"
WINDOW, RESERVE, BOUND = 3000, 300, 200
APPLIED = 3  # compactions, then it is enough
PATIENCE = 600.0  # seconds for a call: some machines read 40 tokens a second
REASONS = {*CODES, *get_args(Reason), "worker_lost"}


@pytest.mark.parametrize(
    ("strategy", "sections"),
    [("sliding", ["Summary"]), ("hierarchical", ["Overall Goal", "Next Steps", "Active Files"])],
)
def test_replay__a_real_small_model__bounds_and_fallbacks_hold(
    service: Service,
    smollm: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    sections: list[str],
) -> None:
    monkeypatch.setattr(settings, "MODEL_CALL_TIMEOUT", PATIENCE)
    service.patch("tenant", {"summarizer": {"model": smollm.name, "api_base": smollm.base_url, "api_key": "none"}})
    given = transcripts.find(FILE)
    path = service.create(
        context_window=WINDOW,
        policy={
            "enabled": True, "strategy": strategy, "summary_sections": sections, "summary_max_tokens": BOUND,
            "reserve_output_tokens": RESERVE, "resummarize_max_passes": 2,
        },
    )  # fmt: skip
    problems: list[str] = []
    log: list[Any] = []
    for step in steps(given.messages):
        service.append(path, *step)
        if service.work_off():
            problems += context_problems(service.context(path), COUNTER, reserve=RESERVE, system=None)
            log = service.compactions(path)
            if sum(entry["outcome"] == "applied" for entry in log) >= APPLIED:
                break
    with capsys.disabled():
        show(f"{strategy}, {len(sections)} section(s)", log)

    identifier = path.removeprefix("conversations/")
    problems += bound_problems(log, COUNTER, BOUND)
    problems += chain_problems(service.tenant_id, identifier)
    problems += audit(service.tenant_id, identifier, COUNTER)
    assert problems == []
    applied = [entry for entry in log if entry["outcome"] == "applied"]
    assert len(applied) == APPLIED
    assert {entry["outcome"] for entry in log} <= {"applied", "irreducible", "skipped"}
    for entry in applied:
        assert entry["context_after"]["tokens"] < entry["context_before"]["tokens"]
        assert (entry["method"] == "extractive") <= (entry["fallback_reason"] in REASONS)
        calls = service.calls(entry["id"])
        assert calls
        assert entry["llm_tokens_in"] == sum(call.tokens_in for call in calls)
        assert {one["error"] for one in entry["passes"] if one["error"]} <= REASONS
        if strategy == "sliding":
            read = [one for one in entry["passes"] if one["status"] == "succeeded" and one["from_position"]]
            assert min(one["from_position"] for one in read) == entry["from_position"]
            assert max(one["to_position"] for one in read) == entry["to_position"]


def show(title: str, log: list[Any]) -> None:
    """The passes, for who runs it."""
    table = Table("entry", "pass", "kind", "positions", "in", "out", "seconds", "error", title=title)
    for number, entry in enumerate(log, 1):
        for one in entry["passes"]:
            span = f"{one['from_position']}..{one['to_position']}" if one["from_position"] else ""
            table.add_row(
                str(number), str(one["number"]), f"{one['kind']}{'' if one['model'] else ' (extractive)'}", span,
                str(one["tokens_in"]), str(one["tokens_out"]), f"{(one['duration_ms'] or 0) / 1000:.1f}",
                one["error"] or "",
            )  # fmt: skip
        before, after = (entry[name]["tokens"] for name in ("context_before", "context_after"))
        table.add_row(
            str(number), "", f"{entry['outcome']}, {entry['method']}", "", str(before), str(after), "",
            entry["fallback_reason"] or "", end_section=True,
        )  # fmt: skip
    Console(width=120).print(table)
