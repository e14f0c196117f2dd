"""Reads of tenants and keys."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, connections
from django.db.models import QuerySet

from compaction_service.routers import current_alias
from tenants import keys
from tenants.crypto import decrypt
from tenants.models import ApiKey, PlatformKey, Tenant
from tenants.principal import Principal, expand
from tenants.scope import current_tenant, platform_scope, required_tenant
from tenants.statements import Select

_OWN = Select(Tenant, "true", tenant="id")  # read with every pass
_KEEP = "select id from tenants_tenant where id = %s for key share"
_AUTHENTICATE = "select * from tenants_authenticate(%s)"
# The columns of the function from `tenant_id` on, under the model's names.
_TENANT_COLUMNS = [
    "id", "name", "status", "policy", "summarizer", "redaction", "retention_days", "limits", "weight", "created_at",
]  # fmt: skip


class FoundKey(NamedTuple):
    """What a good key stands for, before anything was decided about its tenant."""

    principal: Principal
    last_used_at: datetime | None


def key_find(secret: str, now: datetime) -> FoundKey | None:
    """The holder of a key that is known, not revoked and not expired; else None. One round trip, outside any scope."""
    prefix = keys.prefix_of(secret, keys.TENANT)
    if prefix is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_AUTHENTICATE, [prefix])
        row = cursor.fetchone()
    if row is None:
        keys.matches(secret, None, None)  # the same work as for a known prefix
        return None
    key_id, name, digest, pepper, scopes, expires_at, revoked_at, last_used_at, *tenant_row = row
    if not keys.matches(secret, digest, pepper) or not _valid(expires_at, revoked_at, now):
        return None
    for column in (3, 4, 7):  # policy, summarizer, limits come as JSON text
        tenant_row[column] = json.loads(tenant_row[column])
    tenant = Tenant.from_db("default", _TENANT_COLUMNS, tenant_row)
    return FoundKey(Principal(tenant, key_id, name, expand(scopes)), last_used_at)


def platform_key_find(secret: str, now: datetime) -> PlatformKey | None:
    """The platform key of this secret if it is known, not revoked and not expired."""
    prefix = keys.prefix_of(secret, keys.PLATFORM)
    if prefix is None:
        return None
    with platform_scope():
        key = PlatformKey.objects.filter(prefix=prefix).first()
    if key is None:
        keys.matches(secret, None, None)
        return None
    good = keys.matches(secret, key.digest, key.pepper) and _valid(key.expires_at, key.revoked_at, now)
    return key if good else None


def _valid(expires_at: datetime | None, revoked_at: datetime | None, now: datetime) -> bool:
    return (expires_at is None or now < expires_at) and (revoked_at is None or now < revoked_at)


def tenant_get(tenant_id: UUID | None = None) -> Tenant:
    """The tenant in scope, or any under the platform role. Raises Tenant.DoesNotExist."""
    if tenant_id is not None:
        return Tenant.objects.get(id=tenant_id)
    for tenant in _OWN.rows():
        return tenant
    raise Tenant.DoesNotExist


def tenant_keep() -> bool:
    """Keep the tenant in scope from being deleted until the transaction ends. False: it is gone.

    For what writes without the lock of one of its conversations: whoever holds that is waited for by a deletion.
    """
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_KEEP, [required_tenant()])
        return cursor.fetchone() is not None


def tenant_list() -> QuerySet[Tenant]:
    """All tenants, under the platform role."""
    return Tenant.objects.all()


def key_list() -> QuerySet[ApiKey]:
    """Keys of the tenant in scope that are not revoked."""
    return ApiKey.objects.filter(revoked_at=None)


def summarizer_secret(tenant: Tenant) -> str | None:
    """The provider's API key of the tenant in scope, decrypted, for the one call that needs it; None without one.

    The tenant must be the one in scope, so that no code path can send one tenant's key with another's text.
    """
    if current_tenant() != tenant.id:
        raise ValueError("Not the tenant in scope.")
    return decrypt(tenant.summarizer_key) if tenant.summarizer_key else None
