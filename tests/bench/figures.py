"""A figure, the target it is held against, and the one report that all runs write theirs into."""

from __future__ import annotations

import json
import operator
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from compaction_service.local.stack import DATA_DIR

REPORT = DATA_DIR / "bench.json"
# What `make bench` leaves to commands of their own, since each takes long.
ELSEWHERE = {
    "make bench-quality": ("locomo_local", "locomo_contain", "locomo_full", "extract_s", "paths_kept"),
    "make test-reliability": ("lost_appends", "double_applied", "stuck", "recovery_s"),
    "make fuzz": ("contract_failures", "fuzz_5xx"),
}
INFORMATION = "information"
TARGET = re.compile(r"(<=|>=|=)?\s*(\d*\.?\d+)")
COMPARE = {"<=": operator.le, ">=": operator.ge, "=": operator.eq}


@dataclass(frozen=True)
class Figure:
    """`target` is a comparison such as "<= 1.15", a number that it is to be, or "information". `value` None: it could
    not be measured, see detail."""

    value: float | None
    unit: str
    target: str = INFORMATION
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        if self.target == INFORMATION:
            return None
        found = TARGET.match(self.target)
        if found is None:
            return None
        return self.value is not None and bool(COMPARE[found[1] or "="](self.value, float(found[2])))


Figures = dict[str, Figure]


def rounded(value: float, digits: int = 3) -> float:
    """A value with so many significant digits."""
    return float(f"{value:.{digits}g}")


def ratio(over: list[float], under: list[float]) -> float:
    """Median over median."""
    return rounded(median(over) / median(under))


def table(measured: Figures) -> Table:
    """The figures, and those that are not measured yet with the command that does it."""
    made = Table(title="Benchmarks")
    for heading in ("figure", "value", "unit", "target", ""):
        made.add_column(heading, justify="right" if heading == "value" else "left")
    for name, figure in measured.items():
        verdict = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}[figure.met]
        shown = "-" if figure.value is None else f"{figure.value:g}"
        made.add_row(name, shown, figure.unit, figure.target, verdict)
    for command, names in ELSEWHERE.items():
        for name in names:
            if name not in measured:
                made.add_row(name, "-", "", "", command)
    return made


def read(path: Path = REPORT) -> Figures:
    """What the report says; nothing where there is none."""
    if not path.exists():
        return {}
    return {name: Figure(**told) for name, told in json.loads(path.read_text())["figures"].items()}


def write(figures: Figures, path: Path = REPORT) -> None:
    """Write the report; figures that are in it already and were not measured now stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = {
        "figures": {name: asdict(figure) for name, figure in (read(path) | figures).items()},
        "machine": {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "date": now,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
