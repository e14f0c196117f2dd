"""`manage.py jobs`: the queue of compactions, by tenant."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from rich import box
from rich.console import Console
from rich.table import Table

from compaction_service.compactions import queue
from compaction_service.compactions.queue import TenantQueue
from tenants.models import Tenant
from tenants.scope import platform_scope


class Command(BaseCommand):
    help = "Show live compactions by tenant: queued, waiting for another attempt, running, with an expired lease."

    def handle(self, *_args: Any, **_options: Any) -> None:
        with platform_scope():
            found = queue.by_tenant()
            names = dict(Tenant.objects.filter(id__in=[one.tenant_id for one in found]).values_list("id", "name"))
        if not found:
            self.stdout.write("No live compactions.")
            return
        table = Table("Tenant", box=box.SIMPLE_HEAD, show_edge=False)
        for name in ("Queued", "Later", "Running", "Expired", "Longest due", "Oldest"):
            table.add_column(name, justify="right", no_wrap=True)
        for one in found:
            table.add_row(names.get(one.tenant_id, str(one.tenant_id)), *_cells(one))
        if len(found) > 1:
            table.add_section()
            table.add_row("all", *_cells(_sum(found)))
        # As wide as the terminal there; a file takes the whole table. A tenant's name is printed as it is.
        console = Console(
            file=self.stdout,  # type: ignore[arg-type]  # a wrapper of the stream
            width=None if self.stdout.isatty() else 120,
            markup=False,
            emoji=False,
            highlight=False,
        )
        console.print(table)


def _cells(one: TenantQueue) -> list[str]:
    counts = [f"{getattr(one, state):,}" for state in queue.STATES]
    return [*counts, _age(one.oldest_due), _age(one.oldest)]


def _sum(found: list[TenantQueue]) -> TenantQueue:
    counts = {state: sum(getattr(one, state) for one in found) for state in queue.STATES}
    ages = {name: max(getattr(one, name) for one in found) for name in ("oldest_due", "oldest")}
    return TenantQueue(tenant_id=found[0].tenant_id, **counts, **ages)


def _age(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
