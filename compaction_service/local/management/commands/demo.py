"""`manage.py demo`: the whole service on this machine, a long conversation through it, and what came of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compaction_service.local import environment, tables, transcripts
from compaction_service.local.api_client import Api, ApiFailure
from compaction_service.local.engines import free_port
from compaction_service.local.errors import StackError
from compaction_service.local.progress import replay_with_bar
from compaction_service.local.replaying import Options, Report
from compaction_service.local.stack import DATA_DIR, Stack, running_stack

TRANSCRIPT = transcripts.SHIPPED / "airline.jsonl"
WINDOW = 8_000
LEAST_COMPACTIONS = 3
# The demo stands on its own: what these name (a running `up`, a deployment) is left alone.
LEFT_OUT = ("DATABASE_URL", "BROKER_URL", "CACHE_URL", *environment.ROLES, *environment.SECRETS)


class Command(BaseCommand):
    help = (
        "Start the service in a folder of its own, replay a recorded conversation in a window of "
        f"{WINDOW:,} tokens, and stop it again. Needs no account, no key and no network: summaries are extractive."
    )
    requires_system_checks = ()  # the settings' databases start further down

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "demo", help="where its data is kept")
        parser.add_argument("--keep", action="store_true", help="go on serving until Ctrl-C, to look around")

    def handle(self, *_args: Any, **given: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        started = time.monotonic()
        try:
            self.stdout.write("Starting PostgreSQL, Valkey, web, worker and beat; the first time takes longer.")
            with running_stack(environment_of(os.environ), given["data_dir"].resolve()) as stack:
                ready = time.monotonic()
                self.stdout.write(
                    f"Serving at {stack.base_url} after {ready - started:.1f} s. Replaying {TRANSCRIPT.name}."
                )
                self.stdout.flush()
                report = self._replay(stack)
                if given["keep"]:
                    self._keep(stack, report)
                stopping = time.monotonic()
        except KeyboardInterrupt:
            raise CommandError("Interrupted; everything is shut down.", returncode=130) from None
        except (StackError, ApiFailure, transcripts.TranscriptError) as exc:
            raise CommandError(str(exc)) from exc
        ended = time.monotonic()
        self.stdout.write(
            f"\nStarted in {ready - started:.1f} s, replayed in {report.seconds:.1f} s, "
            f"stopped in {ended - stopping:.1f} s; {ended - started:.1f} s in all."
        )
        self._judge(report, stack)

    def _replay(self, stack: Stack) -> Report:
        accounts = stack.accounts
        with Api(accounts["api_base"], accounts["api_key"]) as api:
            report = replay_with_bar(api, transcripts.find(TRANSCRIPT), Options(window=WINDOW))
        stack.group.check()  # no process has died meanwhile
        tables.show(tables.console(self.stdout), report)  # type: ignore[arg-type]  # a wrapper of the stream
        return report

    def _keep(self, stack: Stack, report: Report) -> None:
        self.stdout.write("\n" + "\n".join(tables.where_next(report, stack.accounts)))
        self.stdout.write("\nServing until Ctrl-C.")
        self.stdout.flush()
        try:
            while True:
                stack.group.check()
                time.sleep(0.5)
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")

    def _judge(self, report: Report, stack: Stack) -> None:
        """Say what was to happen and whether it did; CommandError unless all of it."""
        contexts, bad = len(report.readings), sum(1 for one in report.readings if one.problems)
        running = [name for name, process in stack.services.items() if process.popen.poll() is None]
        checks = {
            f"{len(report.applied)} compactions applied by the worker (at least {LEAST_COMPACTIONS})": (
                len(report.applied) >= LEAST_COMPACTIONS
            ),
            f"{contexts - bad} of {contexts} contexts fit and are valid, none degraded": contexts > 0 and not bad,
            f"{len(report.summaries)} summaries in the chain, with the originals behind them": (
                bool(report.summaries) and not report.problems
            ),
            "everything is shut down": not running,
        }
        for text, good in checks.items():
            self.stdout.write(f"  {'ok    ' if good else 'FAILED'}  {text}")
        if not all(checks.values()):
            raise CommandError("The demo did not go as it should; see above.")
        self.stdout.write(
            "\nWhere to look next"
            "\n  .venv/bin/python manage.py demo --keep     the same, and it stays up: API docs, admin, curl commands"
            "\n  make up                                    the service for you to use, until Ctrl-C; then, beside it,"
            "\n  .venv/bin/python manage.py replay airline --window 8000 --preset navigator"
        )


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what would tie the demo to other engines, roles or ports."""
    left_out = {name + ending for name in LEFT_OUT for ending in ("", "_FILE")}
    return {name: value for name, value in environ.items() if name not in left_out} | {"PORT": str(free_port())}


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
