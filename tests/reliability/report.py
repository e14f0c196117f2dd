"""The figures of a run: a table for a person, and `.data/bench.json` for programs."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench import figures as bench

TARGETS = {"lost_appends": "= 0", "double_applied": "= 0", "stuck": "= 0", "recovery_s": "<= 40"}


@dataclass
class Recoveries:
    """Seconds from a kill to the final outcome of what it interrupted."""

    seconds: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def spread(self) -> dict[str, float]:
        if not self.seconds:
            return {"count": 0}  # no kill cut a job off: nothing was measured
        ordered = sorted(self.seconds)
        return {
            "count": len(ordered),
            "median": round(statistics.median(ordered), 1),
            "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 1),
            "max": round(ordered[-1], 1),
        }


recoveries = Recoveries()  # of the chosen kills of this run


@dataclass(frozen=True)
class Figure:
    value: float
    unit: str
    detail: dict[str, Any]


def write(figures: dict[str, Figure]) -> None:
    """Write the figures into the report, with the load of the machine they were taken on."""
    load = [round(one, 1) for one in os.getloadavg()]
    bench.write(
        {
            name: bench.Figure(one.value, one.unit, TARGETS[name], {**one.detail, "load": load})
            for name, one in figures.items()
        }
    )


def show(figures: dict[str, Figure], faults: dict[str, int], facts: dict[str, Any]) -> None:
    """Print what was done and what came of it."""
    out = Console(width=110)
    out.print()
    done = Table(title="What was done", title_justify="left")
    done.add_column("fault")
    done.add_column("times", justify="right")
    for name, count in sorted(faults.items()):
        done.add_row(name, str(count))
    out.print(done)
    table = Table(title="What came of it", title_justify="left")
    for name in ("figure", "value", "target"):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for name, one in figures.items():
        table.add_row(name, f"{one.value:g} {one.unit}".strip(), TARGETS[name])
    out.print(table)
    for name, fact in facts.items():
        out.print(f"{name}: {fact}", highlight=False)
