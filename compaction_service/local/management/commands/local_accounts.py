"""`manage.py local_accounts`: a part of `up`, run where the database is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from compaction_service.local import accounts


class Command(BaseCommand):
    help = "Make the tenant, keys and admin user of a local stack, and write them to a private file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("base_url", help="where the stack is served, e.g. http://127.0.0.1:8000")
        parser.add_argument("file", type=Path, help="the JSON file to write")

    def handle(self, *_args: Any, **options: Any) -> None:
        accounts.ensure(options["base_url"], options["file"])
