"""Links, files, targets and commands that the pages mention exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands
from prometheus_client.metrics import MetricWrapperBase

from compaction_service.api import metrics
from compaction_service.compactions import metrics as compaction_metrics
from compaction_service.compactions.metrics import Queue
from compaction_service.compactions.queue import STATES
from tests.unit.docs.pages import PAGES, ROOT, blocks, cells, prose, rows

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
# Made by a run or by whoever sets the service up.
MADE = (".data/", ".venv", "docker/.env")
TOP = tuple(
    f"{name}/" for name in ("compaction_service", "tenants", "worker", "tests", "docs", "docker", ".data", ".venv")
)


def _ids(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_links__of_a_page__lead_somewhere(page: Path) -> None:
    found = [link for link in LINK.findall(prose(page)) if not link.startswith("https://")]
    missing = [link for link in found if not (page.parent / link.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_files__that_a_page_names__exist(page: Path) -> None:
    named = [text for text in CODE.findall(prose(page)) if text.startswith(TOP) and not text.startswith(MADE)]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_targets__that_a_page_names__are_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", prose(page))) <= targets


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_management_commands__that_a_page_names__exist(page: Path) -> None:
    assert set(re.findall(r"manage\.py ([a-z_]+)", page.read_text(encoding="utf-8"))) <= set(get_commands())


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_tables__of_a_page__have_as_many_cells_in_every_row(page: Path) -> None:
    widths: list[int] = []
    for line in prose(page).splitlines():
        if not line.startswith("|"):
            widths = []
            continue
        widths.append(len(cells(line)))
        assert widths[0] == widths[-1], line


def test_index__all_pages_of_the_folder__are_linked() -> None:
    linked = set(LINK.findall((ROOT / "docs/index.md").read_text()))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked


def test_readme__tree__names_folders_that_exist() -> None:
    tree = next(block.text for block in blocks(ROOT / "README.md") if block.language == "text")
    folder = ROOT
    for line in tree.splitlines():
        for name in re.findall(r"([a-z_]+)/", line):
            inside = ROOT / "compaction_service" / name
            assert (inside if line.startswith("  ") else folder / name).is_dir(), line


def test_operations__metrics_labels_and_states__are_those_of_the_code() -> None:
    told = {row[0].strip("`"): row for row in rows(ROOT / "docs/operations.md", first="metric")}
    measured = {**vars(metrics), **vars(compaction_metrics)}.values()
    ours: list[Any] = [*(one for one in measured if isinstance(one, MetricWrapperBase)), *Queue().describe()]
    names = {getattr(one, "_name", "") or one.name: ", ".join(one._labelnames) for one in ours}
    assert {name: row[1] for name, row in told.items()} == names
    assert re.findall(r"`(\w+)`", told["compaction_jobs"][2]) == list(STATES)
