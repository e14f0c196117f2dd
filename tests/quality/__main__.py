"""`make bench-quality`: how good the summaries are that no model wrote. Writes into `.data/bench.json`.

The conversations are where tests/transcripts.py looks for them. Only LoCoMo's first five were tuned on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.bench import figures as report
from tests.quality import chats, coding, facts, locomo
from tests.transcripts import FOLDER, transcript

FACT_SOURCES = {"tau_bench": 600, "locomo": 1200, "mtbench101": 600, "openhands": 300, "aider": 260, "swe_agent": 400}


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    target: str
    reached: bool | None  # None: there is no target
    detail: dict[str, Any] = field(default_factory=dict)


def measured() -> Iterator[list[Figure]]:
    yield _locomo()
    yield _coding()
    yield _chats()
    yield _facts()


def _locomo() -> list[Figure]:
    path = FOLDER / "locomo.json"
    timed, bare = locomo.talks(path), locomo.talks(path, timed=False)
    half = locomo.TUNED_ON
    told, tuned = locomo.figures(timed[half:]), locomo.figures(timed[:half])
    untimed = locomo.figures(bare[half:])
    least = {"local": 0.45, "contain": 0.24, "full": 0.46}
    out = [
        Figure(
            f"locomo_{name}",
            told[name],
            "share",
            f">= {low}",
            told[name] >= low,
            {"tuned_on": tuned[name], "without_times": untimed[name]},
        )
        for name, low in least.items()
    ]
    others = {name: told[name] for name in ("tokrec", "evid", "evall", "room_used")}
    seconds = max(told["seconds"], tuned["seconds"])
    return [*out, Figure("extract_s", seconds, "s per 15,000 words", "<= 0.1", seconds <= 0.1, others)]


def _coding() -> list[Figure]:
    found = coding.figures(coding.sessions(FOLDER))
    every = found["all"]
    target = ">= 0.8 of paths, >= 0.5 of the rest"
    reached = every["path"] >= 0.8 and every["rest"] >= 0.5
    return [
        Figure("paths_kept", every["path"], "share of paths", target, reached, found),
        *(
            Figure(f"{kind}_kept", every[kind], "share", "", None, {name: one[kind] for name, one in found.items()})
            for kind in ("rest", *coding.KINDS[1:])
        ),
    ]


def _chats() -> list[Figure]:
    found = {name: chats.figures(chats.chats(transcript(name).messages)) for name in chats.SOURCES}
    value = fmean(one["local"] for one in found.values())
    return [Figure("chat_local", value, "share", ">= 0.875", value >= 0.875, found)]


def _facts() -> list[Figure]:
    out = []
    for name, summarise in (("facts_extractive", facts.extractive), ("facts_model", facts.by_model)):
        found = {
            source: facts.survival(transcript(source, most).messages, summarise)
            for source, most in FACT_SOURCES.items()
        }
        out.append(Figure(name, fmean(one[-1] for one in found.values()), "share after six", "", None, found))
    return out


def table(figures: list[Figure]) -> Table:
    made = Table(title="Extractive summaries, 8:1")
    for heading in ("figure", "value", "unit", "target", "", "detail"):
        made.add_column(
            heading, justify="right" if heading == "value" else "left", no_wrap=heading in ("figure", "value")
        )
    for one in figures:
        sign = "" if one.reached is None else ("reached" if one.reached else "MISSED")
        made.add_row(one.name, f"{one.value:.3f}", one.unit, one.target, sign, _short(one.detail))
    return made


def _short(detail: dict[str, Any]) -> str:
    told = {name: value for name, value in detail.items() if isinstance(value, float)}
    rounds = {name: value for name, value in detail.items() if isinstance(value, list)}
    return "\n".join(
        [
            *([", ".join(f"{name} {value:.3f}" for name, value in told.items())] if told else []),
            *(f"{name} {' '.join(f'{share:.2f}' for share in shares)}" for name, shares in rounds.items()),
        ]
    )


def main() -> int:
    console = Console()
    if not (FOLDER / "locomo.json").exists():
        console.print("No conversations: name their folder in TRANSCRIPTS.")
        return 1
    figures: list[Figure] = []
    with Progress(console=console) as progress:
        task = progress.add_task("Summarising", total=4)
        for some in measured():
            figures += some
            progress.advance(task)
    console.print(table(figures))
    report.write({one.name: report.Figure(one.value, one.unit, one.target, one.detail) for one in figures})
    console.print(f"Written to {report.REPORT}")
    return int(any(one.reached is False for one in figures))


if __name__ == "__main__":
    sys.exit(main())
