from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.utils import timezone

from tenants.models import ApiKey, Tenant
from tenants.scope import platform_scope
from tests.conftest import Member


def form(tenant: Member, **changes: Any) -> dict[str, Any]:
    return {"name": tenant.tenant.name, "status": "active", "weight": 1, "limits": "{}", **changes}


def path(tenant: Member) -> str:
    return f"/admin/tenants/tenant/{tenant.id}/change/"


def stored(tenant: Member) -> Tenant:
    with platform_scope():
        return Tenant.objects.get(id=tenant.id)


def test_limits__valid__are_stored(root: Client, tenant: Member) -> None:
    assert root.post(path(tenant), form(tenant, limits='{"conversations": 5}')).status_code == 302
    assert stored(tenant).limits == {"conversations": 5}


def test_limits__unknown_or_no_object__are_refused_by_name(root: Client, tenant: Member) -> None:
    for limits in ('{"nonsense": 5}', "[]", '{"conversations": -1}'):
        page = root.post(path(tenant), form(tenant, limits=limits))
        assert page.status_code == 200
    assert "nonsense" in root.post(path(tenant), form(tenant, limits='{"nonsense": 5}')).content.decode()
    assert stored(tenant).limits == {}


def test_policy_and_summarizer__posted__are_the_tenants_own(root: Client, tenant: Member) -> None:
    root.post(path(tenant), form(tenant, policy='{"enabled": true}', summarizer='{"api_base": "https://evil.test"}'))
    assert stored(tenant).policy == {}
    assert stored(tenant).summarizer == {}


def test_list__by_name__shows_the_number_of_keys(root: Client, tenant: Member) -> None:
    page = root.get("/admin/tenants/tenant/", {"q": tenant.tenant.name}).content.decode()
    assert f'?tenant={tenant.id}">2</a>' in page


def test_keys__revoked__end_at_once(root: Client, staff: Callable[..., Client], tenant: Member) -> None:
    with platform_scope():
        key = ApiKey.unscoped.filter(tenant_id=tenant.id)[0]
    posted = {"action": "revoke", "_selected_action": [str(key.id)]}
    staff("tenants.view_apikey").post("/admin/tenants/apikey/", posted)
    with platform_scope():
        assert ApiKey.unscoped.get(id=key.id).revoked_at is None
    root.post("/admin/tenants/apikey/", posted)
    with platform_scope():
        revoked_at = ApiKey.unscoped.get(id=key.id).revoked_at
    assert revoked_at is not None
    assert revoked_at <= timezone.now()


def test_sidebar__reviewer__shows_what_they_may_view(staff: Callable[..., Client]) -> None:
    page = staff("compactions.view_compaction").get("/admin/compactions/compaction/").content.decode()
    assert "/admin/compactions/summary/" not in page
    assert "/admin/tenants/platformkey/" not in page
