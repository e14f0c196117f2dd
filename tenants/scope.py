"""Whose data a piece of code may touch.

`tenant_scope(tenant_id)` is the only way to a tenant's rows: it opens the transaction, tells PostgreSQL the tenant
(row-level security filters by it) and tells Python (managers filter by it, and raise without it). `platform_scope()`
switches to the role that sees all tenants, for the admin, `/v1/admin` and commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from uuid import UUID

from django.db import connections, models, transaction

from compaction_service.routers import current_alias

# Owns the platform's own rows in tables of tenants' rows. No tenant has this id, since theirs hold a time: so no
# tenant's scope sees them.
PLATFORM = UUID(int=0)

_tenant: ContextVar[UUID | None] = ContextVar("tenant", default=None)

M = TypeVar("M", bound=models.Model)


class NoTenantInScope(Exception):  # noqa: N818  (says what is missing)
    """A tenant's data was asked for outside a scope."""


class WrongScope(Exception):  # noqa: N818
    """A scope inside the scope of another tenant, or the platform's inside a tenant's."""


def current_tenant() -> UUID | None:
    """The tenant in scope, or None."""
    return _tenant.get()


def required_tenant() -> UUID:
    """The tenant in scope; raises NoTenantInScope without one."""
    if (tenant_id := _tenant.get()) is None:
        raise NoTenantInScope("No tenant in scope: use tenant_scope(tenant_id).")
    return tenant_id


@contextmanager
def tenant_scope(tenant_id: UUID) -> Iterator[None]:
    """One transaction of one tenant. A scope of the same tenant inside joins it; one of another raises WrongScope."""
    outer = _tenant.get()
    if outer is not None:
        if outer != tenant_id:
            raise WrongScope("A scope of another tenant is open.")
        yield
        return
    connection = connections[current_alias.get()]
    inside_transaction = connection.in_atomic_block
    with transaction.atomic(using=connection.alias):
        _tell_database(connection, str(tenant_id))
        token = _tenant.set(tenant_id)
        try:
            yield
        finally:
            _tenant.reset(token)
        if inside_transaction and not connection.needs_rollback:
            # The setting lives until the end of the outer transaction; the scope is over now.
            _tell_database(connection, "")


@contextmanager
def platform_scope() -> Iterator[None]:
    """One transaction under the platform role. Scopes of tenants may be opened inside; not the other way round."""
    if _tenant.get() is not None:
        raise WrongScope("The scope of a tenant is open.")
    token = current_alias.set("platform")
    try:
        with transaction.atomic(using="platform"):
            yield
    finally:
        current_alias.reset(token)


def _tell_database(connection: Any, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select set_config('app.tenant', %s, true)", [value])


class TenantManager(models.Manager[M]):
    """Rows of the tenant in scope. Every query method but `none()` raises NoTenantInScope without one."""

    def get_queryset(self) -> models.QuerySet[M]:
        return super().get_queryset().filter(tenant_id=required_tenant())

    def none(self) -> models.QuerySet[M]:
        return super().get_queryset().none()


class PlatformManager(models.Manager[M]):
    """Rows of all tenants; raises WrongScope under any role but the platform's."""

    def get_queryset(self) -> models.QuerySet[M]:
        if current_alias.get() != "platform":
            raise WrongScope("Rows of all tenants are for the platform role: use platform_scope().")
        return super().get_queryset()


class TenantModel(models.Model):
    """Base of every table with a tenant: the column, filled from the scope, and the two managers.

    The migration that creates such a table calls `tenants.rls.tenant_table`; a test walks the database and fails
    for a table with `tenant_id` and no policy.
    """

    # No constraint: the policy already ties the column to the caller's tenant, and a foreign key would take a share
    # lock on the tenant's one row for every insert. No index either: models list (tenant, ...) indexes they query by.
    tenant = models.ForeignKey(
        "tenants.Tenant",
        on_delete=models.CASCADE,
        related_name="+",
        default=current_tenant,
        db_constraint=False,
        db_index=False,
        editable=False,
    )

    objects = TenantManager()
    unscoped = PlatformManager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Saves inside the scope of the row's own tenant, or under the platform role; else raises."""
        if current_alias.get() != "platform" and self.tenant_id != required_tenant():
            raise WrongScope("The row belongs to another tenant.")
        super().save(*args, **kwargs)
