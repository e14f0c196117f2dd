"""A compaction as a reviewer sees it: what it removed, kept and cost, and how the chain grew (semantics 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction_service.compactions.models import LIVE, Compaction, NodeState, Outcome, Pass, Summary
from compaction_service.compactions.reverting import newest_in_force
from compaction_service.conversations.terms import PARTS
from compaction_service.conversations.transcripts import visible
from compaction_service.engine.summary import sections

CHAIN = 30  # newest nodes of the timeline
STATE_LABELS = {"active": "success", "merged": "info", "superseded": "", "reverted": "danger", "stale": "warning"}
OUTCOME_LABELS = {
    "applied": "success",
    "skipped": "warning",
    "irreducible": "warning",
    "failed": "danger",
    "cancelled": "",
    "stale": "warning",
    "queued": "info",
    "running": "info",
    "reverted": "danger",
}
REVIEW_LABELS = {"unreviewed": "", "approved": "success", "flagged": "danger"}


@dataclass(frozen=True)
class Bar:
    """The parts of a context as stretches of a line, 0 to 100, of the larger of the two contexts."""

    name: str
    tokens: int
    stretches: list[tuple[str, float, float]]  # part, start, width


@dataclass(frozen=True)
class TextLine:
    """A line of a section. `done` is None where it is no item of a checklist."""

    text: str
    done: bool | None = None


@dataclass(frozen=True)
class Link:
    """A node of the timeline: its span as a stretch of the conversation, 0 to 100."""

    node: Summary
    start: float
    width: float
    label: str


def outcome(row: Compaction) -> str:
    """One word for how it stands: its outcome, `reverted` where it was undone, its status while it is live."""
    if row.reverted_at is not None:
        return "reverted"
    return row.outcome or row.status


def tokens_of(context: Mapping[str, Any] | None) -> int | None:
    return None if context is None else context["tokens"]


def bars(row: Compaction) -> list[Bar]:
    """The context before and after, by part."""
    contexts = [("before", row.context_before), ("after", row.context_after)]
    most = max((tokens_of(context) or 0 for _, context in contexts), default=0)
    found = []
    for name, context in contexts:
        if not context or not most:
            continue
        stretches, start = [], 0.0
        for part in PARTS:
            width = 100 * context["breakdown"][part] / most
            stretches.append((part, round(start, 2), round(width, 2)))
            start += width
        found.append(Bar(name, context["tokens"], stretches))
    return found


def part_rows(row: Compaction) -> list[tuple[str, int | None, int | None]]:
    """Part, tokens before, tokens after; the sum last."""
    before, after = row.context_before, row.context_after
    if not before:
        return []
    rows = [
        (part, before["breakdown"][part], after["breakdown"][part] if after else None)
        for part in PARTS
        if before["breakdown"][part] or (after and after["breakdown"][part])
    ]
    return [*rows, ("all", before["tokens"], tokens_of(after))]


def section_lines(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[TextLine]]]:
    """Heading and lines of each section, items of checklists told apart."""
    return [(visible(one["heading"]), text_lines(one["text"])) for one in found]


def text_lines(text: str) -> list[TextLine]:
    lines = []
    for line in text.splitlines():
        item = sections.item(line)
        lines.append(TextLine(visible(item["text"]), item["done"]) if item else TextLine(visible(line)))
    return lines


def notes(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What the job noted, such as `invented_files`: a name and what it says."""
    return [row for note in found for row in ([_typed(note)] if "kind" in note else _plain(note))]


def _typed(note: Mapping[str, Any]) -> tuple[str, str]:
    """A note of the ledger, or one that is gone from it (engine/summary/notes.py)."""
    positions = ", ".join(map(str, note["positions"]))
    words = f"{note['kind']}, {note['state']}".replace("_", " ")
    return words, visible(f"{note['text']} (importance {note['importance']}, from {positions})")


def _plain(note: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), visible(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
        for name, value in note.items()
    ]


def chain(nodes: Sequence[Summary], last_position: int) -> list[Link]:
    """The nodes of a conversation as a timeline over its positions."""
    scale = 100 / max(1, last_position)
    return [
        Link(
            node=node,
            start=round((node.from_position - 1) * scale, 2),
            width=round(max(0.5, (node.to_position - node.from_position + 1) * scale), 2),
            label=STATE_LABELS[NodeState(node.state)],
        )
        for node in nodes
    ]


def attempts(row: Compaction) -> list[Pass]:
    """Its passes, without what the model wrote in each."""
    return list(Pass.objects.filter(compaction_id=row.id).order_by("number").defer("output"))


def doable(row: Compaction) -> dict[str, str | bool]:
    """What may be done with it now: True, or why not."""
    live = row.status in LIVE
    return {
        "review": "It has not ended." if live else True,
        "cancel": True if live else "It has ended.",
        "revert": _revertible(row),
    }


def _revertible(row: Compaction) -> str | bool:
    if row.reverted_at is not None:
        return "It was reverted."
    if row.outcome != Outcome.APPLIED:
        return "Only what was applied can be undone."
    if row.conversation.compaction_live is not None:
        return "Another compaction of the conversation is live."
    newest = newest_in_force(row.conversation_id)
    if newest is not None and row.id < newest.id:
        return "Only the newest applied one can be undone."
    return True if newest == row else "Messages under its summary were erased: there is nothing left to undo."
