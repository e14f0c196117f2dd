"""What may import what, beyond the contracts in pyproject.toml (`make lint`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.conftest import Member

ROOT = Path(__file__).resolve().parents[2]
# Answers every kind of request in a process that has only imported the web application, then lists what was loaded.
WEB = """
import json, sys
from compaction_service import wsgi
from django.test import Client

client = Client(SERVER_NAME="localhost", headers={"Authorization": "Bearer " + sys.argv[1]})
said = [{"role": role, "content": "x" * 900} for role in ("user", "assistant") * 4]
body = {"model": "gpt-4o", "context_window": 4096, "messages": said}
made = client.post("/v1/conversations", body, content_type="application/json")
path = "/v1/conversations/" + made.json()["id"]
asked = client.post(path + "/compactions", {"dry_run": True}, content_type="application/json")
asked = client.post(path + "/compactions", {}, content_type="application/json")
read = client.get(path + "/context")
assert (made.status_code, asked.status_code, read.status_code) == (201, 202, 200), asked.content
print(json.dumps(sorted(sys.modules)))
"""
# What a start waits for.
START = """
import json, sys
from compaction_service import wsgi

print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports of our packages, those of other packages included."""
    return grimp.build_graph("compaction_service", "tenants", "worker", include_external_packages=True)


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("engine", {"orjson", "sentencex"}),
        ("tokens", {"tiktoken"}),
        ("llm", {"litellm", "httpx", "httpcore", "openai", "compaction_service.engine.model_names"}),
    ],
)
def test_pure_package__its_imports__are_its_own_the_standard_library_and_few_others(
    graph: grimp.ImportGraph, package: str, allowed: set[str]
) -> None:
    own = f"compaction_service.{package}"
    found = set(_outside(graph, own)) - set(sys.stdlib_module_names)
    assert found <= allowed


def _outside(graph: grimp.ImportGraph, package: str) -> Iterator[str]:
    for module in {package} | graph.find_descendants(package):
        for imported in graph.find_modules_directly_imported_by(module):
            if not f"{imported}.".startswith(f"{package}."):
                yield imported


def test_web_process__after_requests__has_loaded_neither_litellm_nor_tasks(tenant: Member) -> None:
    assert _packages_after(WEB, tenant.key) & {"litellm", "openai", "worker"} == set()


def test_web_process__ready_to_serve__has_loaded_no_client_of_broker_or_cache(tenant: Member) -> None:
    assert _packages_after(START, tenant.key) & {"celery", "kombu", "redis", "litellm", "worker"} == set()


def _packages_after(script: str, key: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, key],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
