"""All of a tenant at once, over every table there is: given out as JSON Lines, or deleted. Under the platform role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connections, models

from tenants.models import Tenant
from tenants.rls import quoted
from tenants.scope import platform_scope

BATCH = 500
_FIRST = "conversations_conversation"  # of what is deleted
# Not given out: answers kept for repeats say nothing new, and directories of work are gone in a moment.
_SKIPPED = frozenset({"api_idempotency", "compactions_work", "conversations_recount"})


def tenant_models() -> list[type[models.Model]]:
    """Every model with a tenant's rows, but for the tenant's own."""
    return [
        model
        for model in apps.get_models()
        if any(getattr(field, "attname", "") == "tenant_id" for field in model._meta.get_fields())  # noqa: SLF001
    ]


def tenant_export(tenant_id: UUID) -> Iterator[dict[str, Any]]:
    """`{"table", "row"}` for every row, the tenant's own first; `Tenant.DoesNotExist` for none.

    Digests of keys and encrypted secrets are left out. Each batch is a transaction of its own: a row that is written
    meanwhile may be in it or not.
    """
    yield from _rows(Tenant, {"id": tenant_id})
    for model in tenant_models():
        if model._meta.db_table not in _SKIPPED:  # noqa: SLF001
            yield from _rows(model, {"tenant_id": tenant_id})


def _rows(model: type[models.Model], which: dict[str, Any]) -> Iterator[dict[str, Any]]:
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.BinaryField)]  # noqa: SLF001
    names = [field.attname for field in fields if field.name != "pk"]
    manager = getattr(model, "unscoped", model._default_manager)  # noqa: SLF001
    last: Any = None
    while True:
        with platform_scope():
            found = manager.filter(**which).order_by("pk")
            if last is not None:
                found = found.filter(pk__gt=last)
            batch = list(found.values("pk", *names)[:BATCH])
        for row in batch:
            last = row.pop("pk")
            yield {"table": model._meta.db_table, "row": {"id": last, **row} if "id" in names else row}  # noqa: SLF001
        if len(batch) < BATCH:
            return


def tenant_delete(tenant_id: UUID) -> dict[str, int]:
    """Deletes every row of the tenant in one transaction; how many by table. Nothing names it afterwards.

    `ValueError` for a tenant that is not suspended: its keys must be refused before its rows go. The foreign keys
    between its tables are looked at when the transaction ends, so the order of the tables is free, save that
    conversations go first: a job that holds one is waited for, and after that none finds any to write for.
    """
    tenant = Tenant.objects.select_for_update().get(id=tenant_id)
    if tenant.status != Tenant.Status.SUSPENDED:
        raise ValueError("not suspended")
    counts = {}
    with connections["platform"].cursor() as cursor:
        for model in sorted(tenant_models(), key=lambda one: one._meta.db_table != _FIRST):  # noqa: SLF001
            table = model._meta.db_table  # noqa: SLF001
            cursor.execute(f"delete from {quoted(table)} where tenant_id = %s", [tenant_id])  # noqa: S608 -- our own names
            counts[table] = cursor.rowcount
        cursor.execute("delete from tenants_tenant where id = %s", [tenant_id])
        counts["tenants_tenant"] = cursor.rowcount
    return counts
