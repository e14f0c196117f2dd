"""Headers, cookies, logins, and what must never be in a log line."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from compaction_service.logs import JsonFormatter
from tenants.scope import platform_scope
from tests.inprocess import Service
from tests.model_server import Control
from tests.stack import DATA_DIR
from tests.unit.docs.pages import ROOT


def test_headers__pages_and_data__have_a_policy_and_cannot_be_framed(service: Service) -> None:
    for path, page in (("/docs", True), ("/admin/login/", True), ("/v1/schema", False), ("/v1/tenant", False)):
        answer = service.client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'" if page else "default-src 'none'"), path
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "http" not in policy  # nothing from another host


def test_check_deploy__production_settings__says_nothing() -> None:
    production = {"HTTPS": "true", "SECRET_KEY": "k" * 25 + uuid.uuid4().hex, "ALLOWED_HOSTS": "api.example.com"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT, env={**os.environ, **production}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _log_in(name: str, password: str, address: str) -> int:
    form = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/admin/login/", form).status_code


def test_login__many_wrong_passwords__the_name_waits_from_any_address(db: None) -> None:
    name, other = f"ann-{uuid.uuid4()}", f"bob-{uuid.uuid4()}"
    with platform_scope():
        for one in (name, other):
            User.objects.create_superuser(one, password="right-horse")
    addresses = [f"192.0.2.{n}" for n in range(10)]
    assert {_log_in(name, "wrong", address) for address in addresses} == {200}
    assert _log_in(name, "right-horse", "192.0.2.99") == 429
    assert _log_in(other, "right-horse", "192.0.2.99") == 302


def test_logs__requests_and_jobs_over_marked_content__hold_no_word_of_it(
    service: Service, models: Control, model: str, caplog: pytest.LogCaptureFixture, pytestconfig: pytest.Config
) -> None:
    mark, key = f"mark{uuid.uuid4().hex}", f"sk-{uuid.uuid4().hex}"
    caplog.set_level(logging.DEBUG, logger="compaction_service")
    caplog.set_level(logging.DEBUG, logger="tenants")
    service.summarizer(models, model)
    service.patch("tenant", {"summarizer": {"api_key": models.key, "extra_headers": {"X-Key": key}}})
    turns = [{"role": role, "content": f"{mark} " * 100} for role in ("user", "assistant") * 3]
    path = service.create(external_id=mark, metadata={"m": mark}, system=mark, messages=turns)
    service.compact(path, focus=mark)
    service.get(f"conversations/ext:{mark}/messages")
    service.get(f"compactions?q={mark}")
    service.post(f"{path}/messages", {"messages": [{"role": mark, "content": mark}]}, status=400)
    service.post(f"{path}/messages", {mark: mark}, status=400)
    service.client.get(f"/v1/{mark}/nowhere")
    taken = {"model": "gpt-4o", "external_id": mark, "system": mark, "metadata": {"m": mark}}
    service.post("conversations", taken, status=409)
    service.post(f"{path}/fork", {"position": 1, "external_id": mark}, status=409)
    written = [JsonFormatter().format(record) for record in caplog.records]
    assert len(written) > 8
    for line in written:
        for secret in (mark, key, models.key):
            assert secret not in line, json.loads(line)["message"]
    database_log = pytestconfig.stash[DATA_DIR] / "log" / "postgres.log"
    if database_log.exists():  # a server of somebody else's logs elsewhere
        lines = database_log.read_text(errors="replace")
        for told in (mark, key, models.key, "conversation_external_id"):  # nor the error that a taken name would be
            assert told not in lines


def test_cookies__of_the_admin__are_out_of_scripts_reach(db: None) -> None:
    client = Client()
    client.get("/admin/login/")
    cookies: Any = client.cookies
    assert cookies["csrftoken"]["httponly"]
    assert cookies["csrftoken"]["samesite"] == "Lax"
