"""`manage.py sync_registry`: models, windows and prices from the litellm that is installed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from compaction_service.registry import services
from compaction_service.registry.catalogue import CatalogueMissingError
from tenants.scope import platform_scope

_SHOWN = 20  # names listed of each kind


class Command(BaseCommand):
    help = "Bring the registry of models up to the installed litellm. Overrides stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="print what would change, and change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        console = Console(file=cast("IO[str]", self.stdout))
        try:
            with platform_scope():
                found = services.drift() if options["check"] else self._sync(console)
        except CatalogueMissingError as error:
            raise CommandError(str(error)) from error
        table = Table("models", "count", *(["which"] if options["check"] else []))
        for kind, names in (("added", found.added), ("changed", found.changed), ("absent", found.absent)):
            table.add_row(kind, str(len(names)), *([_some(names)] if options["check"] else []))
        table.add_row("unchanged", str(len(found.same)))
        console.print(table)

    def _sync(self, console: Console) -> services.Drift:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("Models", total=None)
            return services.sync(lambda done, total: bar.update(task, completed=done, total=total))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
