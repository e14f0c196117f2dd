"""`manage.py reencrypt`: provider keys under the newest of ENCRYPTION_KEYS, so that older ones can go."""

from __future__ import annotations

from typing import Any

from cryptography.fernet import InvalidToken
from django.core.management.base import BaseCommand, CommandError

from tenants.crypto import rotate
from tenants.models import Tenant
from tenants.scope import platform_scope


class Command(BaseCommand):
    help = "Encrypt all stored provider keys anew under the first of ENCRYPTION_KEYS. Safe to run again."

    def handle(self, *_args: Any, **_options: Any) -> None:
        with platform_scope():
            ids = list(Tenant.objects.exclude(summarizer_key=None).order_by("id").values_list("id", flat=True))
        done, unreadable = 0, []
        for tenant_id in ids:
            with platform_scope():  # a transaction for each: nobody's request waits for all
                tenant = Tenant.objects.select_for_update().get(id=tenant_id)
                try:
                    tenant.summarizer_key = rotate(tenant.summarizer_key) if tenant.summarizer_key else None
                except InvalidToken:
                    unreadable.append(str(tenant_id))
                    continue
                tenant.save(update_fields=["summarizer_key"])
                done += 1
        self.stdout.write(f"{done} provider keys are under the newest key.")
        if unreadable:
            raise CommandError(f"No key of ENCRYPTION_KEYS reads those of: {', '.join(unreadable)}.")
