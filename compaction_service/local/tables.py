"""A replay's report for a person: as wide as the terminal, and readable in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compaction_service.local.replaying import Reading, Report
from compaction_service.local.transcripts import JSON

ROWS = 18  # contexts shown; a row stands for the readings up to it
PROBLEMS_SHOWN = 10
BAR_LEAST, BAR_MOST = 10, 60  # characters
CHAIN_WIDTH = 48  # characters of a row of the chain before its text
SPARKS = "▁▂▃▄▅▆▇█"
PLAIN_SPARKS = ".:-=+*#@"


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console on `stream`. Texts of a conversation are printed as they are: no markup, no emoji codes."""
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)


def show(out: Console, report: Report) -> None:
    """Print everything there is to see: contexts over time, compactions, the chain, totals, problems."""
    out.print()
    out.print(contexts(out, report))
    out.print(all_contexts(out, report))
    for part in (compactions(report), summaries(out, report), totals(report)):
        out.print()
        out.print(part)
    for line in problems(report):
        out.print(Text(line, style="red"))


def contexts(out: Console, report: Report) -> Table:
    """Tokens of the contexts over time, with the service and without."""
    table = _table(f"Contexts: tokens to send, of a window of {report.window:,} (compaction due at {report.limit:,})")
    for name in ("Message", "Turn", "Without", "With"):
        table.add_column(name, justify="right", no_wrap=True)
    full, rest = "█░" if _blocks(out) else "#."
    width = max(BAR_LEAST, min(BAR_MOST, out.width - 36))
    table.add_column(f"{full} with  {rest} without", no_wrap=True, overflow="crop")
    most = max((one.tokens_without for one in report.readings), default=1)
    for one in sample(report.readings, ROWS):
        filled, length = (max(1, round(width * value / most)) for value in (one.tokens, one.tokens_without))
        bar = full * filled + rest * (length - filled)
        table.add_row(f"{one.position + 1}", f"{one.turn}", f"{one.tokens_without:,}", f"{one.tokens:,}", bar)
    return table


def all_contexts(out: Console, report: Report) -> Text:
    """Every context as a share of the window, on one line: the rise between compactions and the fall at each."""
    label = f"All {len(report.readings)} of the window: "
    values = [one.tokens for one in report.readings]
    width = max(1, min(len(values), out.width - len(label) - 1))
    marks = SPARKS if _blocks(out) else PLAIN_SPARKS
    return Text(label + (spark(values, report.window, width, marks) if values else "none"), style="cyan")


def compactions(report: Report) -> Table:
    """The log: what each compaction did, and how long it took."""
    table = _table("Compactions")
    for name in ("#", "Trigger", "Positions", "Tokens", "Passes", "Method", "Queued", "Ran"):
        left, long = name in ("Trigger", "Method"), name == "Method"  # a model's name gives way to the numbers
        table.add_column(name, justify="left" if left else "right", no_wrap=not long, overflow="ellipsis")
    for number, one in enumerate(report.compactions, 1):
        tokens = _arrow(one["context_before"], one["context_after"])
        method = one["model"] or one["method"] or "-"
        if one["outcome"] != "applied":
            tokens, method = one["outcome"] or one["status"], one["reason"] or "-"
        span = _span(one)
        times = (_seconds(one["queued_ms"]), _seconds(one["duration_ms"]))
        table.add_row(f"{number}", one["trigger"], span, tokens, f"{len(one['passes'])}", _line(method), *times)
    return table


def summaries(out: Console, report: Report) -> Table:
    """The chain: every node in every state, oldest first."""
    table = _table("Summary chain")
    for name in ("Node", "Level", "Positions", "State", "Tokens"):
        table.add_column(name, justify="left" if name == "State" else "right", no_wrap=True)
    table.add_column("Begins", no_wrap=True, overflow="ellipsis")
    room = max(BAR_LEAST, out.width - CHAIN_WIDTH)
    for number, node in enumerate(report.summaries, 1):
        style = None if node["state"] == "active" else "dim"
        cells = (f"{number}", f"{node['level']}", _span(node), node["state"], f"{node['tokens']:,}")
        begins = Text(first_line(node["text"]))
        begins.truncate(room, overflow="ellipsis")
        table.add_row(*cells, begins, style=style)
    return table


def totals(report: Report) -> Table:
    """What it came to."""
    table = Table(title="Totals", title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _totals(report):
        table.add_row(name, text)
    return table


def problems(report: Report) -> Iterator[str]:
    """What went wrong, a line each; nothing if all is well."""
    found = report.all_problems
    if found:
        yield f"\n{len(found)} problems:"
        yield from (f"  {_line(text)}" for text in found[:PROBLEMS_SHOWN])
    if len(found) > PROBLEMS_SHOWN:
        yield f"  and {len(found) - PROBLEMS_SHOWN} more"


def where_next(report: Report, accounts: JSON) -> Iterator[str]:
    """Addresses and commands, ready to be pasted. `accounts`: what `up.json` says; empty for a service elsewhere."""
    root, conversation = report.api_base.removesuffix("/v1"), f"{report.api_base}/conversations/{report.conversation}"
    key = accounts.get("api_key", "$API_KEY")
    yield "Where to look next"
    yield f"  API docs   {root}/docs"
    if accounts.get("admin_url"):
        yield f"  Admin      {accounts['admin_url']}  ({accounts['admin_user']} / {accounts['admin_password']})"
    curl = f'  curl -s -H "Authorization: Bearer {key}"'
    yield f"{curl} {conversation}/context"
    yield f"{curl} {conversation}/summaries"
    yield f"{curl} '{report.api_base}/compactions?conversation={report.conversation}'"


def sample(readings: Sequence[Reading], rows: int) -> list[Reading]:
    """At most `rows` readings, evenly spread, the last included; each the largest context since the row before."""
    groups = min(rows, len(readings))
    edges = [len(readings) * number // groups for number in range(groups + 1)] if groups else []
    return [max(readings[a:b], key=lambda one: one.tokens) for a, b in pairwise(edges)]


def spark(values: Sequence[int], top: int, width: int, marks: str = SPARKS) -> str:
    """One character for each of `width` groups of values, as high as the group's largest is of `top`."""
    edges = [len(values) * number // width for number in range(width + 1)]
    highest = (max(values[a:b]) for a, b in pairwise(edges))
    return "".join(marks[min(len(marks) - 1, value * len(marks) // max(1, top))] for value in highest)


def first_line(markdown: str) -> str:
    """The first line that is no heading, without control characters."""
    lines = (line.strip().removeprefix("- ") for line in markdown.splitlines())
    return _line(next((line for line in lines if line and not line.startswith("#")), ""))


def _totals(report: Report) -> Iterator[tuple[str, str]]:
    readings = report.readings
    without, used = (sum(values) for values in ([r.tokens_without for r in readings], [r.tokens for r in readings]))
    share = f"{(without - used) / without:.0%}" if without else "-"
    yield "Conversation", report.conversation
    yield "Replayed", f"{report.messages} messages of {_line(report.transcript)}, for {_line(report.model)}"
    yield "Tokens sent to the model", f"{used:,} with the service, {without:,} without"
    yield "Saved", f"{without - used:,} tokens, {share}"
    if readings:
        over = next((one for one in readings if one.tokens_without > report.window), None)
        largest = max(readings, key=lambda one: one.tokens)
        yield "Largest context", f"{largest.tokens:,} with, {readings[-1].tokens_without:,} without"
        if over:
            yield "Without the service", f"over the window from message {over.position + 1} on"
    bad = sum(1 for one in readings if one.problems)
    yield "Contexts", f"{len(readings)} read, {len(readings) - bad} fit and valid, {bad} not"
    yield "Compactions", f"{len(report.applied)} applied of {len(report.compactions)}"
    yield "Masked tool results", f"up to {max((one.masked for one in readings), default=0)} in a context"
    yield "Longest wait", f"{max((one.waited_s for one in readings), default=0):.2f} s for a context"
    yield "Time", f"{report.seconds:.1f} s"


def _table(title: str) -> Table:
    look = {"box": box.SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)}
    return Table(title=title, title_justify="left", title_style="bold", **look)  # type: ignore[arg-type]


def _blocks(out: Console) -> bool:
    return out.encoding.lower().startswith("utf")


def _span(one: JSON) -> str:
    return "-" if one["from_position"] is None else f"{one['from_position']}-{one['to_position']}"


def _arrow(before: Any, after: Any) -> str:
    return f"{before['tokens']:,} -> {after['tokens']:,}" if before and after else "-"


def _seconds(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.2f} s"


def _line(text: str) -> str:
    """Any text on one line: a terminal obeys control characters, and a file cannot hold lone surrogates."""
    return "".join(char if char.isprintable() else " " for char in text)
