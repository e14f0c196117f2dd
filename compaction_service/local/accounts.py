"""Who uses a local stack: a tenant with a key, a platform key, and an admin user. Kept in `up.json`, mode 600."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from django.contrib.auth.models import User
from django.utils import timezone

from compaction_service.local.environment import write_private
from tenants import selectors, services
from tenants.models import Scope, Tenant
from tenants.scope import platform_scope, tenant_scope

TENANT = "local"
ADMIN = "admin"


def ensure(base_url: str, file: Path) -> dict[str, str]:
    """Write `file` and return what it says. What it said before stays where it is still valid.

    A tenant has no rate limit unless one is set, so this one has none.
    """
    known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    with platform_scope():
        tenant = Tenant.objects.filter(name=TENANT).first() or services.tenant_create(TENANT)
    accounts = {
        "api_base": f"{base_url}/v1",
        "api_key": _api_key(tenant, known.get("api_key", "")),
        "platform_key": _platform_key(known.get("platform_key", "")),
        "admin_url": f"{base_url}/admin/",
        "admin_user": ADMIN,
        "admin_password": _admin_password(known.get("admin_password", "")),
    }
    write_private(file, json.dumps(accounts, indent=2) + "\n")
    return accounts


def _api_key(tenant: Tenant, known: str) -> str:
    found = selectors.key_find(known, timezone.now())
    if found and found.principal.tenant.id == tenant.id:
        return known
    with tenant_scope(tenant.id):
        return services.key_create(Scope.values, "local stack").secret


def _platform_key(known: str) -> str:
    if selectors.platform_key_find(known, timezone.now()):
        return known
    with platform_scope():
        return services.platform_key_create("local stack")


def _admin_password(known: str) -> str:
    with platform_scope():
        user = User.objects.filter(username=ADMIN).first()
        if user and known and user.check_password(known):
            return known
        password = secrets.token_urlsafe(12)
        user = user or User(username=ADMIN)
        user.is_active = user.is_staff = user.is_superuser = True
        user.set_password(password)
        user.save()
    return password
