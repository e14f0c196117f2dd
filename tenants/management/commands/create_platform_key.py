"""`manage.py create_platform_key NAME`: a key of /v1/admin."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from tenants import audit, keys, services
from tenants.models import PlatformKey
from tenants.scope import platform_scope


class Command(BaseCommand):
    help = "Create a key of /v1/admin and print it. It is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is for")

    def handle(self, *_args: Any, **options: Any) -> None:
        with platform_scope():
            secret = services.platform_key_create(options["name"])
            key = PlatformKey.objects.get(prefix=keys.prefix_of(secret, keys.PLATFORM))
            audit.record_of_platform("platform_key.created", "command:create_platform_key", f"platform_key:{key.id}")
        self.stdout.write(secret)
