"""The chain a compaction is building: the nodes it keeps, the one it adds, and the merges between (semantics 7).

A draft of the chain lies in the compaction's `work` while merge passes run; only the apply writes nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils import timezone

from compaction_service.compactions.models import Compaction, Method, NodeState, Summary
from compaction_service.compactions.steps import Final
from compaction_service.conversations.terms import Terms
from compaction_service.engine import formats, jsontext
from compaction_service.engine.strategies import Link, Merge, next_merge, rolls
from compaction_service.engine.summary import notes
from compaction_service.engine.summary.notes import Note
from compaction_service.ids import uuid7
from tenants.statements import Insert

_INSERT = Insert(Summary)


@dataclass(frozen=True)
class Draft:
    """A node of the chain to be. `new`: this compaction makes it, and `text` to `entities` are its content."""

    id: str
    level: int
    tokens: int
    from_position: int
    to_position: int
    from_turn: int
    to_turn: int
    new: bool = False
    parts: tuple[str, ...] = ()  # ids of the nodes merged into it
    text: str = ""
    sections: tuple[Any, ...] = ()
    ledger: tuple[Any, ...] = ()
    chars: int = 0
    method: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chain:
    """`links`: the chain as the context will show it, oldest first; `merged`: drafts that were merged into those."""

    links: tuple[Draft, ...]
    merged: tuple[Draft, ...] = ()

    def due(self, strategy: str, bound: int) -> Merge | None:
        """The next merge it needs."""
        links = [Link(draft.id, draft.level, draft.tokens) for draft in self.links]
        return next_merge(links, strategy=strategy, chain_bound=bound)

    def after(self, merge: Merge, made: Draft) -> Chain:
        """The chain with a merge carried out."""
        gone = self.links[merge.start : merge.end]
        return Chain((*self.links[: merge.start], made, *self.links[merge.end :]), (*self.merged, *gone))

    def as_json(self) -> dict[str, Any]:
        return {"links": [asdict(draft) for draft in self.links], "merged": [asdict(draft) for draft in self.merged]}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Chain:
        links, merged = (tuple(_draft(one) for one in given[name]) for name in ("links", "merged"))
        return cls(links, merged)


def _draft(given: dict[str, Any]) -> Draft:
    tuples = {name: tuple(given[name]) for name in ("parts", "sections", "ledger", "entities")}
    return Draft(**{**given, **tuples})


def started(
    compaction: Compaction, terms: Terms, conversation_format: str, nodes: Sequence[Summary], final: Final
) -> Chain:
    """The chain with the new span's node: in place of the active ones, or after them, as the strategy says."""
    span = compaction.span
    rolling = rolls(compaction.strategy) and bool(nodes)
    first = nodes[0] if rolling else None
    made = made_of(terms, conversation_format, final)
    made = replace(
        made,
        from_position=first.from_position if first else span.first,
        to_position=span.last,
        from_turn=first.from_turn if first else span.first_turn,
        to_turn=span.last_turn,
    )
    return Chain((made,) if rolling else (*map(kept, nodes), made))


def made_of(terms: Terms, conversation_format: str, final: Final) -> Draft:
    """A new draft with this content, counted as the context will show it; its span is the caller's."""
    text = notes.joined(final.text, final.ledger)
    shown = formats.get(conversation_format).summary_message(text, terms.policy.summary_prefix)
    return Draft(
        id=str(uuid7()),
        level=0,
        tokens=terms.counter.message(conversation_format, shown),
        from_position=0,
        to_position=0,
        from_turn=0,
        to_turn=0,
        new=True,
        text=text,
        sections=(*final.sections, *([notes.section_of(final.ledger)] if final.ledger else ())),
        ledger=tuple(notes.as_json(final.ledger)),
        chars=jsontext.chars(shown),
        method=final.method,
        entities=tuple(final.entities),
    )


def merged_of(made: Draft, merge: Merge, parts: Sequence[Draft]) -> Draft:
    """The draft of a merge over its parts."""
    return replace(
        made,
        level=merge.level,
        from_position=parts[0].from_position,
        to_position=parts[-1].to_position,
        from_turn=parts[0].from_turn,
        to_turn=parts[-1].to_turn,
        parts=tuple(part.id for part in parts),
    )


def kept(node: Summary) -> Draft:
    """An active node as a link of the chain; its content stays where it is."""
    return Draft(
        id=str(node.id),
        level=node.level,
        tokens=node.tokens,
        from_position=node.from_position,
        to_position=node.to_position,
        from_turn=node.from_turn,
        to_turn=node.to_turn,
        chars=node.chars,
    )


def parts_of(chain: Chain, merge: Merge) -> list[tuple[str, tuple[Note, ...]]]:
    """What a merge is made of, oldest first: the texts without their ledgers, and these."""
    parts = chain.links[merge.start : merge.end]
    stored = Summary.objects.filter(id__in=[part.id for part in parts if not part.new])
    by_id: dict[str, Draft | Summary] = {str(node.id): node for node in stored}
    return [content(part if part.new else by_id[part.id]) for part in parts]


def content(node: Draft | Summary) -> tuple[str, tuple[Note, ...]]:
    """The text of a node without its ledger, and that."""
    return (notes.without_ledger(node.text) if node.ledger else node.text), notes.from_json(node.ledger)


def write(compaction: Compaction, chain: Chain, nodes: Sequence[Summary]) -> None:
    """Write the chain: new nodes, parents, and what became of the nodes that were active (semantics 10).

    Old states first: no two active nodes may overlap at any moment.
    """
    shown = {draft.id for draft in chain.links}
    parent_of = {part: draft.id for draft in (*chain.links, *chain.merged) for part in draft.parts}
    for node in nodes:
        if str(node.id) not in shown:
            merged = str(node.id) in parent_of
            node.state = NodeState.MERGED if merged else NodeState.SUPERSEDED
            node.retired_by = compaction
            node.save(update_fields=["state", "retired_by"])
    new = [draft for draft in (*chain.links, *chain.merged) if draft.new]
    _INSERT.run([_row(compaction, one, shown=one.id in shown, parent=parent_of.get(one.id)) for one in new])
    for node in nodes:
        if str(node.id) in parent_of:
            Summary.objects.filter(id=node.id).update(parent_id=parent_of[str(node.id)])


def _row(compaction: Compaction, draft: Draft, *, shown: bool, parent: str | None) -> Summary:
    return Summary(
        id=draft.id,
        tenant_id=compaction.tenant_id,
        conversation_id=compaction.conversation_id,
        compaction=compaction,
        level=draft.level,
        from_position=draft.from_position,
        to_position=draft.to_position,
        from_turn=draft.from_turn,
        to_turn=draft.to_turn,
        text=draft.text,
        sections=list(draft.sections),
        ledger=list(draft.ledger),
        tokens=draft.tokens,
        chars=draft.chars,
        method=Method(draft.method),
        entities=list(draft.entities),
        parent_id=parent,
        state=NodeState.ACTIVE if shown else NodeState.MERGED,
        created_at=timezone.now(),
    )
