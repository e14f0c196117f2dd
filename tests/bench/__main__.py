"""`python -m tests.bench [--only NAME ...]`: measure, print a table, write `.data/bench.json`."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable
from importlib import import_module

import django
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from tests.bench.figures import REPORT, Figures, read, table, write
from tests.bench.service import Bench, benched

# Module and function: what it measures is in its docstring. In this order, quiet things first.
MEASURES = (
    "engine.counting", "engine.counting_worst", "engine.count_error", "engine.rendering",
    "process.started", "process.memory",
    "requests.queries", "requests.cpu", "requests.flat", "requests.floor",
    "worker.process",
    "replays.agent", "replays.chat",
    "big.database",
    "runs.isolation", "runs.demo",
)  # fmt: skip


def measure(name: str, bench: Bench) -> Figures:
    module, _, function = name.partition(".")
    act: Callable[[Bench], Figures] = getattr(import_module(f"tests.bench.{module}"), function)
    return act(bench)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measures, such as requests or requests.cpu")
    parser.add_argument("--stored", type=int, default=2_000_000, help="messages in the big database (2 million)")
    parser.add_argument("--replayed", type=int, default=10_000, help="messages of each replay (10,000)")
    options = parser.parse_args()
    chosen = [name for name in MEASURES if not options.only or {name, name.partition(".")[0]} & set(options.only)]
    if not chosen:
        parser.error(f"--only knows {', '.join(MEASURES)}")
    console = Console()
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting the service", total=len(chosen))
        with benched(stored=options.stored, replayed=options.replayed) as bench:
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compaction_service.settings")
            django.setup()
            logging.disable(logging.WARNING)  # of this process's own requests
            for name in chosen:
                progress.update(task, description=name)
                write(measure(name, bench))
                progress.advance(task)
    console.print(table(read()))
    console.print(f"Written to {REPORT}. How each is measured: docs/benchmarks.md.")


if __name__ == "__main__":
    main()
