"""The ledger of the hybrid strategy: typed notes that summaries carry word for word (semantics 7, Strategies).

A note is written once. From then on its text is never given to a model to be written again: it stays until another
note replaces it or the ledger's bound has no room for it. A node's text is its summary, then the ledger as a section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from .bound import clip
from .sections import Section, heading_line, one_line, section
from .span import Count
from .transcript import escape

Kind = Literal["fact", "decision", "commitment", "preference", "correction", "open_question"]
KINDS: tuple[Kind, ...] = get_args(Kind)
State = Literal["new", "carried", "replaced", "no_room", "not_borne_out"]

HEADING = "Notes"
SHARE = 4  # the ledger has at most this part of a summary's bound
MAX_TEXT = 300  # characters of a note; a longer one is cut when it is written
MAX_POSITIONS = 6  # of one note: the first, and the newest
LEAST, MOST = 1, 5  # importance
_JOINT = 4  # tokens by which the count of a joined text may be over the sum of its parts


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be kept word for word. `positions`: the messages it comes from, rising; never empty.

    The first position is where it was first said, the last where it was last said.
    """

    kind: Kind
    importance: int  # 1..5
    text: str  # one line
    positions: tuple[int, ...]

    @property
    def key(self) -> str:
        """Notes of one key say the same in the same words."""
        return self.text.casefold().strip(" .!\u3002")

    @property
    def line(self) -> str:
        where = ",".join(map(str, self.positions))
        return f"[{self.kind.replace('_', ' ')} !{self.importance} @{where}] {self.text}"


@dataclass(frozen=True, slots=True)
class Found:
    """A note of a span. `replaces`: indices of the notes before that do not hold any more because of it."""

    note: Note
    replaces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The notes to carry on, oldest first, and what became of the others."""

    notes: tuple[Note, ...] = ()
    replaced: tuple[Note, ...] = ()
    no_room: tuple[Note, ...] = ()


def note(kind: Kind, importance: int, text: str, positions: Iterable[int]) -> Note:
    """A note with all of it within its limits, its text one line that opens and closes no markup.

    Raises ValueError without a text or a position."""
    short = clip(escape(one_line(text)), MAX_TEXT, len)
    where = sorted(set(positions))
    made = Note(kind, max(LEAST, min(MOST, importance)), short, _few(where))
    if not made.key or not where:
        raise ValueError("a note needs a text and a position")
    return made


def _few(positions: Sequence[int]) -> tuple[int, ...]:
    return tuple(positions if len(positions) <= MAX_POSITIONS else [positions[0], *positions[1 - MAX_POSITIONS :]])


def merged(known: Sequence[Note], found: Sequence[Found], budget: int, count: Count) -> Ledger:
    """The ledger with the notes of a span, within `budget` tokens by `cost`.

    Known notes keep their text and their place. One said again gets the new positions and the higher importance; one
    that a later note replaces goes, unless it is said again beside that. Where room is short the most important have
    it first, of these those that were said last. Deterministic, linear in notes but for a sort.
    """
    said = {one.note.key for one in found}
    gone = {
        i
        for one in found
        for i in one.replaces
        if 0 <= i < len(known) and known[i].positions[-1] < one.note.positions[-1] and known[i].key not in said
    }
    kept: dict[str, Note] = {}
    for one in (*(known[i] for i in range(len(known)) if i not in gone), *(one.note for one in found)):
        kept[one.key] = _said_again(kept[one.key], one) if one.key in kept else one
    notes, no_room = _bounded(list(kept.values()), budget, count)
    return Ledger(notes, tuple(known[i] for i in sorted(gone)), no_room)


def _said_again(old: Note, new: Note) -> Note:
    positions = sorted({*old.positions, *new.positions})
    return replace(old, positions=_few(positions), importance=max(old.importance, new.importance))


def _bounded(notes: Sequence[Note], budget: int, count: Count) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """The notes that have room, and those that have none, both in their order."""
    left = budget - cost((), count)
    kept: set[int] = set()
    best = sorted(range(len(notes)), key=lambda i: (-notes[i].importance, -notes[i].positions[-1], i))
    for i in best:
        tokens = count(f"\n- {notes[i].line}")
        if tokens <= left:
            kept.add(i)
            left -= tokens
    # Lines counted one by one may be a token less than together.
    while kept and cost([notes[i] for i in sorted(kept)], count) > budget:
        kept.remove(next(i for i in reversed(best) if i in kept))
    inside = tuple(one for i, one in enumerate(notes) if i in kept)
    return inside, tuple(one for i, one in enumerate(notes) if i not in kept)


def cost(notes: Sequence[Note], count: Count) -> int:
    """Tokens that a ledger adds at most to the text it is joined to; of no notes: what its heading would."""
    return count(f"\n\n{_rendered(notes)}") + _JOINT


def budget_of(bound: int, before: int, span: int) -> int:
    """Tokens for the ledger: a quarter of the summary's bound, and no more than it had `before` and a quarter of the
    `span`'s, so that a short span is not answered by notes longer than itself."""
    return min(bound // SHARE, before + span // SHARE)


def section_of(notes: Sequence[Note]) -> Section:
    return section(HEADING, "\n".join(f"- {one.line}" for one in notes))


def _rendered(notes: Sequence[Note]) -> str:
    return f"{heading_line(HEADING)}\n{section_of(notes)['text']}"


def joined(text: str, notes: Sequence[Note]) -> str:
    """A summary with its ledger, as a node has it."""
    return f"{text}\n\n{_rendered(notes)}".lstrip("\n") if notes else text


def without_ledger(text: str) -> str:
    """The summary in the text of a node that has a ledger: what is before the last heading of notes."""
    head, found, _ = f"\n{text}".rpartition(f"\n{heading_line(HEADING)}\n")
    return head.strip("\n") if found else text


def dissolved(text: str, notes: Sequence[Note]) -> str:
    """The text of a node for a summary that carries no ledger on: the notes are its first facts."""
    if not notes:
        return text
    return "\n".join([*(f"- {one.text}" for one in notes), "", without_ledger(text)])


def numbered(notes: Sequence[Note]) -> str:
    """The notes as the model is shown them, with the numbers by which it may replace some."""
    return "\n".join(f"{number}. {one.line}" for number, one in enumerate(notes, 1))


def as_json(notes: Iterable[Note]) -> list[dict[str, Any]]:
    return [
        {"kind": one.kind, "importance": one.importance, "text": one.text, "positions": list(one.positions)}
        for one in notes
    ]


def from_json(given: Iterable[Mapping[str, Any]]) -> tuple[Note, ...]:
    return tuple(Note(one["kind"], one["importance"], one["text"], tuple(one["positions"])) for one in given)


def logged(notes: Iterable[Note], state: State) -> list[dict[str, Any]]:
    """Notes as the log tells them."""
    return [{**one, "state": state} for one in as_json(notes)]
