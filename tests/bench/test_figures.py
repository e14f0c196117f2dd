from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.figures import Figure, read, table, write


def test_write__figures_of_two_runs__both_are_in_the_report(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bench.json"
    old, new = Figure(2, "ratio", "<= 3", {"messages": 10}), Figure(1, "ratio", "<= 3")
    write({"append_cpu": old, "context_cpu": old}, path)
    write({"context_cpu": new, "stuck": Figure(0, "count", "= 0")}, path)
    assert read(path) == {"append_cpu": old, "context_cpu": new, "stuck": Figure(0, "count", "= 0")}


def test_table__figure_not_measured__has_the_command_that_measures_it() -> None:
    text = io.StringIO()
    Console(file=text, width=120).print(table({"stuck": Figure(0, "count", "= 0")}))
    lines = {line.split()[1]: line for line in text.getvalue().splitlines() if line.startswith("│")}
    assert "reached" in lines["stuck"]
    assert "make test-reliability" in lines["lost_appends"]
    assert "make fuzz" in lines["fuzz_5xx"]


@pytest.mark.parametrize(
    ("value", "target", "met"),
    [(3, "<= 3", True), (3.01, "<= 3", False), (0, "= 0", True), (1, "= 0", False), (None, "<= 3", False),
     (5, "information", None)],
)  # fmt: skip
def test_met__by_target(value: float | None, target: str, met: bool | None) -> None:
    assert Figure(value, "", target).met is met
