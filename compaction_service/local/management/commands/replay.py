"""`manage.py replay`: a recorded conversation against a running service."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compaction_service.local import tables, transcripts
from compaction_service.local.api_client import Api, ApiFailure
from compaction_service.local.progress import replay_with_bar
from compaction_service.local.replaying import Options, Report
from compaction_service.local.stack import ACCOUNTS, DATA_DIR

WRONG, COULD_NOT = 1, 2  # exit codes


class Command(BaseCommand):
    help = (
        "Replay a recorded conversation against a running service, and show every context, compaction and summary. "
        "Exit code 0: every context fits and is valid; 1: one does not or is not; 2: the replay could not be done."
    )
    requires_system_checks = ()  # works against a service anywhere

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="JSON Lines (docs/transcripts.md): a path, or a name such as `airline`")
        parser.add_argument("--id", help="which conversation of the file (the first)")
        parser.add_argument("--limit", type=whole_number, metavar="N", help="replay the first N messages only")
        parser.add_argument("--window", type=whole_number, metavar="N", help="tokens of context window (the model's)")
        parser.add_argument("--model", help="the agent's model (the transcript's)")
        parser.add_argument("--preset", help="navigator, three_layer or infinite_context")
        parser.add_argument("--policy", type=json_object, default={}, metavar="JSON", help="an object of policy fields")
        parser.add_argument("--api-base", help="where the service is, with /v1 (that of `make up`)")
        parser.add_argument("--api-key", help="the key (that of `make up`)")
        parser.add_argument("--json", type=Path, metavar="PATH", help="write the whole report to this file")

    def handle(self, *_args: Any, **given: Any) -> None:
        accounts = _accounts()
        base, key = (given[name] or accounts.get(name) for name in ("api_base", "api_key"))
        if not (base and key):
            raise CommandError(
                "Start a service with `make up`, or give --api-base and --api-key.", returncode=COULD_NOT
            )
        preset = {"preset": given["preset"]} if given["preset"] else {}
        options = Options(given["model"], given["window"], {**preset, **given["policy"]}, given["limit"])
        try:
            transcript = transcripts.find(transcripts.locate(given["file"], os.environ), given["id"])
            with Api(base, key) as api:
                api.get("conversations", {"limit": 1}, attempts=1)  # says at once that nobody is there
                report = replay_with_bar(api, transcript, options)
        except (transcripts.TranscriptError, ApiFailure) as exc:
            raise CommandError(str(exc), returncode=COULD_NOT) from exc
        if given["json"]:
            write(given["json"], report)
        out = tables.console(self.stdout)  # type: ignore[arg-type]  # a wrapper of the stream
        tables.show(out, report)
        known = accounts if base == accounts.get("api_base") else {}
        self.stdout.write("\n" + "\n".join(tables.where_next(report, known)))
        if report.all_problems:
            raise CommandError("Something is wrong with what the service answered; see above.", returncode=WRONG)


def write(path: Path, report: Report) -> None:
    """The report as JSON. Raises CommandError."""
    try:
        path.write_text(json.dumps(dataclasses.asdict(report), indent=1) + "\n", encoding="utf-8")
    except OSError as exc:
        raise CommandError(f"{path} cannot be written: {exc.strerror}.", returncode=COULD_NOT) from exc


def _accounts() -> dict[str, Any]:
    file = DATA_DIR / ACCOUNTS
    accounts: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return accounts


def whole_number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def json_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError
    return value
