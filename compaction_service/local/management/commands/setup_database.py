"""`manage.py setup_database`: everything a database needs before the service starts. May be run again at any time."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from compaction_service import env
from compaction_service.local import roles
from compaction_service.local.errors import StackError

URLS = ("DATABASE_URL", "APP_DATABASE_URL", "PLATFORM_DATABASE_URL")


class Command(BaseCommand):
    help = "Create the database and its roles where missing, migrate as the owner, and sync the model registry."
    requires_system_checks = ()

    def handle(self, *_args: Any, **options: Any) -> None:
        urls = {name: env.text(name) for name in URLS}
        missing = [name for name, url in urls.items() if not url]
        if missing:
            raise CommandError(f"Set {', '.join(missing)}.")
        owner_url, *role_urls = urls.values()
        try:
            app, platform = (roles.role_of(name, url) for name, url in zip(URLS[1:], role_urls, strict=True))
            roles.ensure_database(owner_url)
            roles.ensure_roles(owner_url, app, platform)
        except StackError as exc:
            raise CommandError(str(exc)) from exc
        call_command("migrate", database="owner", interactive=False, verbosity=options["verbosity"])
        call_command("sync_registry", verbosity=options["verbosity"])
