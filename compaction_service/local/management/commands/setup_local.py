"""`manage.py setup_local`: the first step of every local stack, run once its database answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from compaction_service.local import accounts


class Command(BaseCommand):
    help = "Set up the database of a local stack, and write its tenant, keys and admin user to a private file."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("base_url", help="where the stack is served, e.g. http://127.0.0.1:8000")
        parser.add_argument("file", type=Path, help="the JSON file to write")

    def handle(self, *_args: Any, **options: Any) -> None:
        call_command("setup_database", verbosity=options["verbosity"])
        accounts.ensure(options["base_url"], options["file"])
