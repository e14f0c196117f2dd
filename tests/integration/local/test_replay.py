"""The commands a newcomer runs first, against the running service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from compaction_service.local.engines import free_port
from compaction_service.local.stack import BASE_DIR, Stack
from tests.conftest import Member


def replay(live: Stack, tenant: Member, *arguments: str) -> str:
    out = StringIO()
    access = ("--api-base", f"{live.base_url}/v1", "--api-key", tenant.key)
    call_command("replay", *arguments, *access, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_replay__a_real_conversation__every_context_fits_and_the_chain_covers_it(
    live: Stack, tenant: Member, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    policy = '{"mask_tool_results": false}'
    out = replay(live, tenant, "airline", "--window=6000", "--limit=62", "--policy", policy, "--json", str(file))
    report = json.loads(file.read_text())
    applied = [one for one in report["compactions"] if one["outcome"] == "applied"]
    assert report["messages"] == 62
    assert len(applied) >= 2
    assert [one["problems"] for one in report["readings"] if one["problems"]] == []
    assert report["problems"] == []
    assert max(one["tokens"] for one in report["readings"]) <= 4_500  # window - reserve
    assert report["readings"][-1]["tokens_without"] > 6_000
    assert [node["state"] for node in report["summaries"]] == ["superseded"] * (len(applied) - 1) + ["active"]
    assert f"{len(applied)} applied of {len(report['compactions'])}" in out
    assert f"{live.base_url}/v1/conversations/{report['conversation']}/context" in out


def test_replay__an_anthropic_conversation__every_context_fits_and_the_chain_covers_it(
    live: Stack, tenant: Member, tmp_path: Path
) -> None:
    messages: list[Any] = []
    for number in range(20):
        use = {"type": "tool_use", "id": f"u{number}", "name": "bash", "input": {"command": f"cat part{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"value_{number} = {number}\n" * 120}
        messages += [
            {"role": "user", "content": f"What is in part {number}?"},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": f"It sets value_{number}. " * 20}]},
        ]
    talk = {"id": "parts", "format": "anthropic", "system": "Be brief.", "messages": messages}
    (tmp_path / "talk.jsonl").write_text(json.dumps(talk))
    file = tmp_path / "report.json"

    replay(live, tenant, str(tmp_path / "talk.jsonl"), "--window=6000", "--json", str(file))
    report = json.loads(file.read_text())
    assert [one["problems"] for one in report["readings"] if one["problems"]] == []
    assert report["problems"] == []
    assert report["readings"][-1]["turn"] == 20
    assert [one["outcome"] for one in report["compactions"]].count("applied") >= 1


def test_replay__again__is_another_conversation(live: Stack, tenant: Member, tmp_path: Path) -> None:
    found = set()
    for name in ("a", "b"):
        replay(live, tenant, "coding", "--limit=4", "--json", str(tmp_path / name))
        found.add(json.loads((tmp_path / name).read_text())["conversation"])
    assert len(found) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent",), "No transcript absent"),
        (("airline", "--id", "absent"), "has no conversation absent"),
        (("airline", "--preset", "absent"), "preset"),
        (("airline", "--model", "absent-model"), "model"),
        (("airline", "--window", "1500"), "do not fit"),
        (("airline", "--json", "/absent/folder/file", "--limit", "1"), "cannot be written"),
    ],
)
def test_replay__what_cannot_be_done__exit_code_2_and_the_reason(
    live: Stack, tenant: Member, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=said) as failure:
        replay(live, tenant, *arguments)
    assert failure.value.returncode == 2


def test_replay__nobody_serves__says_so_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(CommandError, match="No answer from") as failure:
        call_command("replay", "airline", "--api-base", f"http://127.0.0.1:{free_port()}/v1", "--api-key", "key")
    assert failure.value.returncode == 2
    assert time.monotonic() - started < 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_demo__twice_in_one_folder__ends_well_and_leaves_nothing_running(tmp_path: Path) -> None:
    data = tmp_path / "demo"
    for _ in range(2):
        argv = [sys.executable, "manage.py", "demo", "--data-dir", str(data)]
        done = subprocess.run(argv, cwd=BASE_DIR, env=os.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        for piece in ("Contexts:", "Compactions", "Summary chain", "Totals", "Where to look next"):
            assert piece in done.stdout
        assert "FAILED" not in done.stdout
        assert done.stdout.count("  ok  ") == 4
        assert "\x1b" not in done.stdout
        left = [one for one in psutil.process_iter(["cmdline"]) if str(data) in " ".join(one.info["cmdline"] or ())]
        assert left == []
