"""Who is calling."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tenants.models import Scope, Tenant

# `write` includes `read`, `admin` includes both.
_INCLUDED = {
    Scope.READ.value: frozenset({"read"}),
    Scope.WRITE.value: frozenset({"read", "write"}),
    Scope.ADMIN.value: frozenset({"read", "write", "admin"}),
}


def expand(scopes: list[str]) -> frozenset[str]:
    """Every scope that these include. Unknown ones (of a newer version's key) give nothing."""
    return frozenset().union(*(_INCLUDED.get(scope, frozenset()) for scope in scopes))


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request, as `request.user`. `tenant` is as the key look-up read it, without `summarizer_key`."""

    tenant: Tenant
    key_id: UUID
    key_name: str
    scopes: frozenset[str]
    is_authenticated: bool = True

    def __str__(self) -> str:
        """How log entries name the asker: never the secret."""
        return f"key:{self.key_name or self.key_id}"


@dataclass(frozen=True, slots=True)
class PlatformPrincipal:
    """Somebody of the platform: the holder of a platform key, or a member of the staff."""

    name: str
    is_authenticated: bool = True

    def __str__(self) -> str:
        return self.name
