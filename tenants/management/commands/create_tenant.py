"""`manage.py create_tenant NAME`: a tenant and its first key."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError
from rich.console import Console
from rich.table import Table

from tenants import audit, services
from tenants.models import Scope
from tenants.scope import platform_scope, tenant_scope


class Command(BaseCommand):
    help = "Create a tenant with a key and print both. The key is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="unique name of the tenant")
        parser.add_argument(
            "--scopes", nargs="+", choices=Scope.values, default=[Scope.ADMIN.value],
            help="what the key may do; write includes read, admin includes both (default: admin)",
        )  # fmt: skip
        parser.add_argument("--rate", type=int, metavar="N", help="requests per minute (default: no limit)")
        parser.add_argument("--quiet", action="store_true", help="print the key only, for scripts")

    def handle(self, *_args: Any, **options: Any) -> None:
        limits = {} if options["rate"] is None else {"requests_per_minute": options["rate"]}
        try:
            with platform_scope():
                tenant = services.tenant_create(options["name"], limits)
                with tenant_scope(tenant.id):
                    audit.record("tenant.created", "command:create_tenant", f"tenant:{tenant.id}")
                    issued = services.key_create(options["scopes"], "first key")
        except services.TenantError as exc:
            raise CommandError(exc.detail) from exc
        except IntegrityError as exc:
            raise CommandError("There is a tenant of this name.") from exc
        if options["quiet"]:
            self.stdout.write(issued.secret)
            return
        table = Table("tenant", "id", "key (shown once)", "scopes")
        table.add_row(tenant.name, str(tenant.id), issued.secret, " ".join(options["scopes"]))
        # Wide enough that a key is never wrapped: it is there to be copied.
        console = Console(width=180)
        with console.capture() as shown:
            console.print(table)
        self.stdout.write(shown.get())
