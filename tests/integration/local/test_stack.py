from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from compaction_service.local import accounts
from compaction_service.local.errors import StackError
from compaction_service.local.stack import Stack, running_stack
from tenants import selectors, services
from tenants.scope import platform_scope, tenant_scope
from tests.conftest import Member


def test_live__a_key_of_the_test__is_that_tenant(api: httpx.Client, tenant: Member) -> None:
    assert api.get("/tenant").json()["name"] == tenant.tenant.name


def test_live__keys_of_two_tenants__are_strangers(
    connect: Callable[[str], httpx.Client], tenant: Member, stranger: Member
) -> None:
    names = {connect(key).get("/tenant").json()["name"] for key in (tenant.read_key, stranger.read_key)}

    assert names == {tenant.tenant.name, stranger.tenant.name}


def test_stack__one_runs_in_the_folder__the_second_is_refused(live: Stack) -> None:
    with pytest.raises(StackError, match=f"already runs here .process {os.getpid()}"), running_stack({}, live.data_dir):
        pass


def test_stack__worker_is_killed__says_so_and_can_be_started_again(tmp_path: Path) -> None:
    with running_stack(os.environ, tmp_path) as stack:
        worker = stack.services["worker"].popen
        worker.kill()
        worker.wait()
        with pytest.raises(StackError, match="worker ended with exit code -9"):
            stack.group.check()

        stack.start("worker")

        stack.wait_ready()
        secrets = (tmp_path / "local.env").read_text()
    assert "DATABASE_URL" in secrets
    assert "DATABASE_URL" not in (tmp_path / "local.env").read_text()


@pytest.mark.parametrize("port", ["0", "65536", "eight", "-1", "٨"])
def test_stack__port_is_no_port__is_refused(tmp_path: Path, port: str) -> None:
    with pytest.raises(StackError, match="between 1 and 65535"), running_stack({"PORT": port}, tmp_path):
        pass


def test_stack__port_asked_for_is_taken__is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        environ = {"PORT": str(other.getsockname()[1])}
        with pytest.raises(StackError, match="cannot be used"), running_stack(environ, tmp_path):
            pass


def test_accounts__first_time__everything_works(db: None, tmp_path: Path) -> None:
    made = accounts.ensure("http://127.0.0.1:8000", tmp_path / "up.json")

    assert json.loads((tmp_path / "up.json").read_text()) == made
    assert made["api_base"] == "http://127.0.0.1:8000/v1"
    found = selectors.key_find(made["api_key"], timezone.now())
    assert found is not None
    assert found.principal.scopes == {"read", "write", "admin"}
    assert selectors.platform_key_find(made["platform_key"], timezone.now())
    with platform_scope():
        assert User.objects.get(username=made["admin_user"]).check_password(made["admin_password"])


def test_accounts__again__keeps_what_is_valid_and_replaces_what_is_not(db: None, tmp_path: Path) -> None:
    file = tmp_path / "up.json"
    first = accounts.ensure("http://127.0.0.1:8000", file)
    assert accounts.ensure("http://127.0.0.1:8000", file) == first
    found = selectors.key_find(first["api_key"], timezone.now())
    assert found is not None
    with tenant_scope(found.principal.tenant.id):
        services.key_revoke(found.principal.key_id)

    again = accounts.ensure("http://127.0.0.1:9000", file)

    changed = {name for name in first if first[name] != again[name]}
    assert changed == {"api_base", "admin_url", "api_key"}


def test_live__accounts_of_the_stack__work(live: Stack, connect: Callable[[str], httpx.Client]) -> None:
    assert (live.data_dir / "up.json").stat().st_mode & 0o777 == 0o600
    assert live.accounts["api_base"] == f"{live.base_url}/v1"
    assert connect(live.accounts["api_key"]).get("/tenant").json()["name"] == "local"
