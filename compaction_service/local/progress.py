"""A replay with a progress bar, as the commands `replay` and `demo` show it."""

from __future__ import annotations

import sys

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from compaction_service.local.api_client import Api
from compaction_service.local.replaying import Options, Progress, Report, replay
from compaction_service.local.tables import console
from compaction_service.local.transcripts import Transcript


def replay_with_bar(api: Api, transcript: Transcript, options: Options) -> Report:
    """Replay and show live numbers on stderr, so that stdout holds the report alone."""
    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[numbers]}"))
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None, numbers="")

        def watch(now: Progress) -> None:
            numbers = f"compactions {now.compactions}"
            if now.reading:
                numbers = f"context {now.reading.tokens:,} of {now.reading.tokens_without:,} tokens, {numbers}"
            bar.update(task, total=now.total, completed=now.sent, numbers=numbers)

        return replay(api, transcript, options, watch)
