"""The OpenAPI document against the running service, by Schemathesis with all of its checks.

Bounded in CI; `make fuzz` makes 5,000 cases or more (CONTRACT_EXAMPLES: cases of an operation and phase at most).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compaction_service.local.stack import Stack
from tests.bench.figures import Figure
from tests.conftest import Member
from tests.fuzz import world as worlds

EXAMPLES = os.environ.get("CONTRACT_EXAMPLES", "3")
PHASES = os.environ.get("CONTRACT_PHASES", "examples,fuzzing")
SEED = os.environ.get("FUZZ_SEED", "1")
# A schema cannot say which cursors are ours, which models we know, what a provider takes for a message, or how much
# there is of a conversation: what it allows may be a 400 or 422 all the same.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "404", "409", "422"]
[parameters]
{parameters}
[[operations]]
include-operation-id = "conversations_delete"
parameters = {{ "path.ref" = "{spare}" }}
# It names the spare one whatever was created before, and that one is gone after the first time.
checks.ensure_resource_availability.enabled = false
[[operations]]
include-path-regex = "^/v1/admin/"
headers = {{ Authorization = "Bearer {platform_key}" }}
"""


@pytest.mark.timeout(3600)
def test_document__against_the_running_service__no_check_fails(
    live: Stack, make_tenant: Callable[[], Member], tmp_path: Path, figure: Any
) -> None:
    world = worlds.make(make_tenant(), make_tenant())
    spare = world.ids["ref"][1]
    names = {name: values[0] for name, values in world.ids.items() if name not in ("cursor", "key_id", "position")}
    parameters = "\n".join(f'"path.{name}" = {json.dumps(value)}' for name, value in names.items())
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG.format(parameters=parameters, spare=spare, platform_key=world.platform_key))
    report = tmp_path / "report.ndjson"
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(config), "run",
        f"{live.base_url}/v1/schema", "--header", f"Authorization: Bearer {world.member.key}", "--checks", "all",
        "--phases", PHASES, "--max-examples", EXAMPLES, "--seed", SEED, "--continue-on-failure", "--no-shrink",
        "--request-timeout", "70", "--max-response-time", "65", "--no-color",
        "--report", "ndjson", "--report-ndjson-path", str(report), "--suppress-health-check", "all",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    failed = sum(map(int, re.findall(r"(\d+) (?:failures?|errors?)\b", done.stdout.rpartition("\n=")[2])))
    cases = re.search(r"(\d+) generated", done.stdout)
    told = {"cases": int(cases[1]) if cases else 0, "seed": SEED}
    figure("contract_failures", Figure(failed, "failures", "0", told))
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2000:]
    assert (failed, cases is not None) == (0, True)
