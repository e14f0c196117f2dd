"""Bearer keys. The key's look-up is the one query made before the tenant is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from compaction_service.api.errors import ApiError
from compaction_service.checks import assert_safe_role
from tenants import keys, selectors, services
from tenants.models import Tenant
from tenants.principal import PlatformPrincipal, Principal
from tenants.scope import tenant_scope

TOUCH_EVERY = timedelta(minutes=1)


def bearer(request: Request) -> str | None:
    """The token of `Authorization: Bearer <token>`; None for no or another kind of header."""
    kind, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _check_kind(secret: str, other: str, detail: str) -> None:
    """401 for what has the form of a key of the other kind, whether there is such a key or not."""
    if secret.startswith(f"{other}_"):
        raise AuthenticationFailed(detail)


class KeyAuthentication(BaseAuthentication):
    """`request.user` is the Principal of the key. 401 for no, a wrong, an expired or a revoked key."""

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        if (secret := bearer(request)) is None:
            return None
        _check_kind(secret, keys.PLATFORM, "A tenant's key is wanted here, and this is a platform key.")
        assert_safe_role()
        now = timezone.now()
        found = selectors.key_find(secret, now)
        if found is None:
            raise AuthenticationFailed("The key is unknown, expired or revoked.")
        tenant = found.principal.tenant
        if tenant.status == Tenant.Status.SUSPENDED:
            raise ApiError(403, "tenant_suspended", "The tenant is suspended.")
        if found.last_used_at is None or found.last_used_at < now - TOUCH_EVERY:
            with tenant_scope(tenant.id):
                services.key_touch(found.principal.key_id, now, TOUCH_EVERY)
        request._request.tenant_id = tenant.id  # type: ignore[attr-defined]  # noqa: SLF001  (for the log line)
        return found.principal, None

    def authenticate_header(self, _request: Request) -> str:
        return "Bearer"


class PlatformKeyAuthentication(BaseAuthentication):
    """Keys of `/v1/admin`: `request.user` is a PlatformPrincipal."""

    def authenticate(self, request: Request) -> tuple[PlatformPrincipal, None] | None:
        if (secret := bearer(request)) is None:
            return None
        _check_kind(secret, keys.TENANT, "A platform key is wanted here, and this is a tenant's key.")
        key = selectors.platform_key_find(secret, timezone.now())
        if key is None:
            raise AuthenticationFailed("The key is unknown, expired or revoked.")
        return PlatformPrincipal(f"platform key:{key.name or key.prefix}"), None

    def authenticate_header(self, _request: Request) -> str:
        return "Bearer"


class StaffAuthentication(SessionAuthentication):
    """A superuser logged in to the admin, with Django's CSRF protection."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        result = super().authenticate(request)
        if result is None or not result[0].is_superuser:
            return None
        return PlatformPrincipal(f"staff:{result[0].get_username()}"), None
