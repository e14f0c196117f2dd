"""A figure, the target it is held against, and the report of many."""

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


def table(figures: Figures) -> Table:
    made = Table(title="Benchmarks")
    for heading in ("figure", "value", "unit", "target", ""):
        made.add_column(heading, justify="right" if heading == "value" else "left")
    for name, figure in figures.items():
        verdict = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}[figure.met]
        shown = "-" if figure.value is None else f"{figure.value:g}"
        made.add_row(name, shown, figure.unit, figure.target, verdict)
    return made


def write(path: Path, figures: Figures) -> None:
    """Write the report; figures that are in it already and were not measured now stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()).get("figures", {}) if path.exists() else {}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = {
        "figures": known | {name: asdict(figure) for name, figure in figures.items()},
        "machine": {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "date": now,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
