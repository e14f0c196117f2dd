"""Writes of tenants and keys. Called by the API, the admin and commands alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

# The imports below the API layer are pure (no Django, no models): rules about names of models, a policy's fields, URLs.
from compaction_service.engine import model_names
from compaction_service.engine import policy as policies
from compaction_service.llm.urls import UrlRefused, check_base_url
from tenants import keys, limits
from tenants.crypto import encrypt
from tenants.models import ApiKey, PlatformKey, Tenant
from tenants.scope import required_tenant

UNSET: Any = object()
SUMMARIZER_FIELDS = ("model", "fallback_models", "api_base", "extra_headers")


class TenantError(Exception):
    """Values that cannot be set. `attr` is the first one's path in the request, e.g. `policy.threshold`; `errors` has
    of each its path, what is wrong, and the code."""

    def __init__(self, *errors: tuple[str, str, str]) -> None:
        self.errors = errors
        self.attr, self.detail, _ = errors[0]
        super().__init__(f"{self.attr}: {self.detail}")


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key's row and its secret, which exists nowhere else."""

    key: ApiKey
    secret: str


def tenant_create(name: str, overrides: Mapping[str, Any] | None = None, weight: int = 1) -> Tenant:
    """A new active tenant, under the platform role. TenantError naming a limit; IntegrityError for a name in use."""
    _check_limits(overrides or {})
    return Tenant.objects.create(name=name, limits=dict(overrides or {}), weight=weight)


def tenant_set_limits(tenant_id: UUID, changes: Mapping[str, Any]) -> Tenant:
    """Merges overrides of limits (None unsets), under the platform role. TenantError naming a limit."""
    _check_limits(changes)
    tenant = Tenant.objects.select_for_update().get(id=tenant_id)
    tenant.limits = {name: value for name, value in {**tenant.limits, **changes}.items() if value is not None}
    tenant.save(update_fields=["limits"])
    return tenant


def tenant_set_weight(tenant_id: UUID, weight: int) -> None:
    """Sets the share of the workers, under the platform role."""
    Tenant.objects.filter(id=tenant_id).update(weight=weight)


def tenant_set_status(tenant_id: UUID, status: Tenant.Status) -> bool:
    """Suspends or reactivates, under the platform role. False where it was so already."""
    return Tenant.objects.filter(~Q(status=status), id=tenant_id).update(status=status) == 1


def tenant_update(
    *, policy: Mapping[str, Any] = UNSET, redaction: bool = UNSET, retention_days: int | None = UNSET
) -> Tenant:
    """Changes settings of the tenant in scope. `policy` is merged, None in it unsets (semantics 2). TenantError."""
    tenant = Tenant.objects.select_for_update(no_key=True).defer("summarizer_key").get(id=required_tenant())
    changed = []
    if policy is not UNSET:
        try:
            policies.check(policy)
        except policies.PolicyError as exc:
            raise TenantError(*((f"policy.{one.field}", one.detail, one.code) for one in (exc, *exc.also))) from None
        tenant.policy = policies.merge(tenant.policy, policy)
        changed.append("policy")
    if redaction is not UNSET:
        tenant.redaction = redaction
        changed.append("redaction")
    if retention_days is not UNSET:
        tenant.retention_days = retention_days
        changed.append("retention_days")
    if changed:
        tenant.save(update_fields=changed)
    return tenant


def summarizer_check(changes: Mapping[str, Any]) -> None:
    """TenantError for a model or a base URL that may not be called.

    Looks the host up, so call it outside any transaction.
    """
    named = {"model": changes.get("model")}
    named |= {f"fallback_models.{i}": model for i, model in enumerate(changes.get("fallback_models") or ())}
    for field, model in named.items():
        if model and (problem := model_names.problem(model)):
            raise TenantError((f"summarizer.{field}", problem, "invalid"))
    if url := changes.get("api_base"):
        try:
            check_base_url(url, settings.ALLOW_LOCAL_MODEL_URLS)
        except UrlRefused as exc:
            raise TenantError(("summarizer.api_base", exc.detail, "invalid")) from None


def summarizer_set(changes: Mapping[str, Any]) -> Tenant:
    """Merges the summarizer's settings of the tenant in scope (None unsets); `api_key` is encrypted, never given back.

    The caller has called `summarizer_check`. A key stays with the host it was given for: another `api_base` without
    a new `api_key` drops the stored one, so that a change of URL cannot send the key elsewhere.
    """
    tenant = Tenant.objects.select_for_update(no_key=True).get(id=required_tenant())
    given = {name: changes[name] for name in SUMMARIZER_FIELDS if name in changes}
    before = tenant.summarizer.get("api_base")
    tenant.summarizer = {
        name: value for name, value in {**tenant.summarizer, **given}.items() if value not in (None, [], {})
    }
    if "api_key" in changes:
        tenant.summarizer_key = encrypt(changes["api_key"]) if changes["api_key"] else None
    elif tenant.summarizer.get("api_base") != before:
        tenant.summarizer_key = None
    tenant.save(update_fields=["summarizer", "summarizer_key"])
    return tenant


def key_create(scopes: Sequence[str], name: str = "", expires_at: datetime | None = None) -> IssuedKey:
    """A new key of the tenant in scope."""
    new = keys.generate(keys.TENANT)
    key = ApiKey.objects.create(
        name=name,
        scopes=list(scopes),
        expires_at=expires_at,
        prefix=new.prefix,
        digest=new.digest,
        pepper=new.pepper,
        tenant_id=required_tenant(),
    )
    return IssuedKey(key, new.secret)


def key_rotate(key_id: UUID, overlap: timedelta) -> IssuedKey | None:
    """A new key with the same name, scopes and expiry; the old one works for `overlap` more. None: no such key."""
    old = ApiKey.objects.select_for_update().filter(_alive(), id=key_id).first()
    if old is None:
        return None
    issued = key_create(old.scopes, old.name, old.expires_at)
    end = timezone.now() + overlap
    ApiKey.objects.filter(id=key_id).update(expires_at=min(end, old.expires_at) if old.expires_at else end)
    return issued


def key_revoke(key_id: UUID) -> bool:
    """Ends a key at once. False: no such key, or revoked already."""
    return ApiKey.objects.filter(id=key_id, revoked_at=None).update(revoked_at=timezone.now()) == 1


def key_touch(key_id: UUID, now: datetime, every: timedelta) -> None:
    """Notes the use of a key, unless one was noted less than `every` ago (several requests may come at once)."""
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - every)
    ApiKey.objects.filter(stale, id=key_id).update(last_used_at=now)


def platform_key_create(name: str, expires_at: datetime | None = None) -> str:
    """A new key of `/v1/admin`, under the platform role; returns the secret, which exists nowhere else."""
    new = keys.generate(keys.PLATFORM)
    PlatformKey.objects.create(
        name=name, expires_at=expires_at, prefix=new.prefix, digest=new.digest, pepper=new.pepper
    )
    return new.secret


def _alive() -> Q:
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=timezone.now()))


def _check_limits(overrides: Mapping[str, Any]) -> None:
    try:
        limits.check(overrides)
    except limits.LimitError as exc:
        raise TenantError(*((f"limits.{one.field}", one.detail, one.code) for one in (exc, *exc.also))) from None
