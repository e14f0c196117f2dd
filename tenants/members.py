"""People of a tenant in the admin: Django users with a role in one tenant, who see that tenant and nothing else.

A user without a membership is the platform's staff, with Django's own permissions over all tenants. A member has what
the role gives, whatever other permissions the account was given.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.backends import ModelBackend
from django.db.models import Model, QuerySet

from tenants.models import Member, Role, Tenant

_VIEWER = frozenset(
    {
        "conversations.view_conversation", "compactions.view_compaction", "compactions.view_summary",
        "usage.view_call", "usage.view_day",
    }
)  # fmt: skip
_REVIEWER = _VIEWER | {"compactions.change_compaction"}  # approve, flag, revert, cancel
_OWNER = _REVIEWER | {
    "tenants.view_tenant", "tenants.view_apikey", "tenants.change_apikey", "tenants.view_auditevent",
    "tenants.view_member",
}  # fmt: skip
PERMISSIONS = {Role.VIEWER: _VIEWER, Role.REVIEWER: _REVIEWER, Role.OWNER: _OWNER}


def member_of(user: Any) -> Member | None:
    """The user's membership; None for the platform's staff. Asked once a request."""
    if not getattr(user, "is_authenticated", False) or getattr(user, "is_superuser", False):
        return None
    if not hasattr(user, "_membership"):
        user._membership = Member.unscoped.filter(user_id=user.pk).first()  # noqa: SLF001 -- lives as long as the request
    found: Member | None = user._membership  # noqa: SLF001
    return found


def tenant_of(user: Any) -> UUID | None:
    """The only tenant this user may see; None: all."""
    member = member_of(user)
    return None if member is None else member.tenant_id


def visible_to(user: Any, queryset: QuerySet[Any]) -> QuerySet[Any]:
    """The rows this user may see: those of their tenant, or all for the platform's staff."""
    tenant_id = tenant_of(user)
    if tenant_id is None:
        return queryset
    model: type[Model] = queryset.model
    if model is Tenant:
        return queryset.filter(id=tenant_id)
    has_tenant = any(field.name == "tenant" for field in model._meta.get_fields())  # noqa: SLF001
    return queryset.filter(tenant_id=tenant_id) if has_tenant else queryset.none()


class MemberBackend(ModelBackend):
    """Django's, save that a member's permissions are those of the role and no others."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if user_obj.is_active and (member := member_of(user_obj)):
            return set() if obj is not None else set(PERMISSIONS[Role(member.role)])
        return super().get_all_permissions(user_obj, obj)
