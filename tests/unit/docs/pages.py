"""The project's pages: their code blocks, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Pages of the top folder, then those of docs/.
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block and its language."""

    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a console block that somebody types."""
        return [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def rows(page: Path, *, first: str) -> list[list[str]]:
    """The cells of the table whose first column is headed `first`, without its heading."""
    lines = iter(page.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if cells(line)[:1] == [first]:
            next(lines)
            return list(_body(lines))
    raise LookupError(f"{page.name} has no table with a column {first}.")


def _body(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield cells(line)


def cells(line: str) -> list[str]:
    """The cells of a table's line; an escaped bar is none."""
    if not line.startswith("|"):
        return []
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def code(cell: str) -> str:
    """What stands in the first pair of backticks."""
    return cell.split("`")[1]
