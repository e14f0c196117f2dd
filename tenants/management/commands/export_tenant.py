"""`manage.py export_tenant ID`: all of a tenant's rows as JSON Lines on stdout."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from compaction_service.api.renderers import dumps
from tenants import audit
from tenants.models import Tenant
from tenants.scope import platform_scope, tenant_scope
from tenants.whole import tenant_export


class Command(BaseCommand):
    help = "Write every row of a tenant to stdout, one JSON object a line. Keys and secrets are left out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant", help="id or name of the tenant")

    def handle(self, *_args: Any, **options: Any) -> None:
        with platform_scope():
            found = Tenant.objects.filter(**_which(options["tenant"])).first()
        if found is None:
            raise CommandError("There is no such tenant.")
        with platform_scope(), tenant_scope(found.id):
            audit.record("tenant.exported", "command:export_tenant", f"tenant:{found.id}")
        for line in tenant_export(found.id):
            self.stdout.write(dumps(line).decode())


def _which(text: str) -> dict[str, Any]:
    try:
        return {"id": UUID(text)}
    except ValueError:
        return {"name": text}
