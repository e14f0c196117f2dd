"""A tenant's people in the admin: their tenant's rows and no others, and what their role allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tenants.models import ApiKey, Member, Role
from tenants.scope import platform_scope, tenant_scope
from tests import conftest
from tests.integration.admin.conftest import Made

PAGES = ("conversations/conversation", "compactions/compaction", "compactions/summary", "usage/call", "usage/day")
OWNERS = ("tenants/tenant", "tenants/apikey", "tenants/auditevent", "tenants/member")
PLATFORMS = ("tenants/platformkey", "auth/user", "auth/group", "registry/model")


@pytest.fixture
def member(db: None) -> Callable[..., Client]:
    """Logs in a member of a tenant, who was also given every permission of Django's by mistake."""

    def log_in(tenant: conftest.Member, role: str) -> Client:
        with platform_scope():
            user = User.objects.create(username=f"member-{uuid4()}", is_staff=True)
            user.user_permissions.set(Permission.objects.all())
            Member.unscoped.create(user=user, tenant_id=tenant.id, role=role)
            client = Client()
            client.force_login(user)
        return client

    return log_in


def _status(client: Client, page: str) -> int:
    return client.get(f"/admin/{page}/").status_code


@pytest.mark.parametrize("role", Role.values)
def test_member__pages__are_those_of_the_role(tenant: Any, member: Callable[..., Client], role: str) -> None:
    client = member(tenant, role)
    assert [_status(client, page) for page in PAGES] == [200] * len(PAGES)
    assert {_status(client, page) for page in OWNERS} == {200 if role == "owner" else 403}
    assert {_status(client, page) for page in PLATFORMS} == {403}
    assert client.get("/v1/admin/tenants").status_code == 401


def test_member__another_tenants_things__are_not_there(
    made: Made, stranger: conftest.Member, member: Callable[..., Client]
) -> None:
    compaction = made.compact()
    mine, theirs = member(made.tenant, "owner"), member(stranger, "owner")
    pages = [
        f"conversations/conversation/{made.conversation}/change",
        f"conversations/conversation/{made.conversation}/context",
        f"conversations/conversation/{made.conversation}/messages/1",
        f"compactions/compaction/{compaction}/change",
        f"tenants/tenant/{made.tenant.id}/change",
    ]
    assert [_status(mine, page) for page in pages] == [200] * len(pages)
    for page in pages:
        answer = theirs.get(f"/admin/{page}/", follow=True)
        assert "Bug 0" not in answer.content.decode(), page
        assert answer.status_code in (403, 404) or answer.redirect_chain, page
    for page in (*PAGES, *OWNERS):
        for query in ("", f"?tenant={made.tenant.id}", f"?q={made.conversation}"):
            text = theirs.get(f"/admin/{page}/{query}", follow=True).content.decode()
            assert made.tenant.tenant.name not in text, (page, query)
            assert str(compaction) not in text, (page, query)


def test_member__acting_on_a_compaction__needs_the_role_and_the_tenant(
    made: Made, stranger: conftest.Member, member: Callable[..., Client]
) -> None:
    compaction = made.compact()
    act = f"/admin/compactions/compaction/{compaction}/flag/do/"
    assert member(made.tenant, "viewer").post(act).status_code == 403
    assert member(stranger, "owner").post(act).status_code in (302, 404)
    assert made.row(compaction).review == "unreviewed"
    assert member(made.tenant, "reviewer").post(act).status_code == 302
    assert made.row(compaction).review == "flagged"


def test_owner__revokes_keys__of_their_own_tenant_only(
    tenant: conftest.Member, stranger: conftest.Member, member: Callable[..., Client]
) -> None:
    client = member(tenant, "owner")
    for other, revoked in ((stranger, False), (tenant, True)):
        with tenant_scope(other.id):
            key = ApiKey.objects.all()[0]
        client.post("/admin/tenants/apikey/", {"action": "revoke", "_selected_action": [str(key.id)]})
        with tenant_scope(other.id):
            assert (ApiKey.objects.get(id=key.id).revoked_at is not None) == revoked
