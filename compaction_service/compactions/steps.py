"""What a pass of a compaction is given and what it came to: plain data between its two transactions.

No database here: a step holds all it needs (preparing.py), and a result says what happened (executing.py). What is
written of it is for following.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from compaction_service.compactions.models import Method, PassKind
from compaction_service.engine.policy import Policy
from compaction_service.engine.summary import chunks, language, prompt
from compaction_service.engine.summary.notes import Ledger, Note
from compaction_service.engine.summary.sections import Section
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.llm.errors import CallError
from compaction_service.registry.specs import ModelSpec


@dataclass(frozen=True)
class Model:
    """The summariser of a pass, with what a call to it needs. The key is in no repr."""

    name: str
    window: int
    max_output: int
    spec: ModelSpec  # its prices
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    allow_local: bool = False
    breaker: bytes = b""  # of which breaker its calls are (breakers.py)


@dataclass(frozen=True)
class Step:
    """A pass ready to run. Tokens are raw; `count` is the conversation's counter."""

    compaction_id: uuid.UUID
    conversation_id: uuid.UUID
    pass_id: uuid.UUID
    number: int
    kind: PassKind
    model: Model | None  # None: extractive
    policy: Policy
    focus: str
    instructions: str
    span: Sequence[SpanMessage]  # all of what is covered; none where `whole` is not set
    unread: Sequence[SpanMessage]  # of it, what this and later passes read, its beginning at least
    unread_tokens: int  # of all that is unread
    whole: bool  # `unread` has its end; else this is not the last pass over the span
    part: int  # chunks read before this one
    chunk: int  # which chunk of `unread` this pass reads: 0, save inside a message that is read in pieces
    chunk_tokens: int | None  # a smaller chunk than the window allows, after a refusal
    previous: str  # the running summary: of the chunks before, else the node that is replaced
    before: str  # the texts of the nodes that are replaced or merged
    carried: Collection[int]  # positions of messages that stay in the context word for word
    text: str  # what a re-summarisation shortens
    text_tokens: int | None  # None for the first summary
    tail: Sequence[SpanMessage]  # of what is kept
    replaced_tokens: int
    target: int
    bound: int
    passes_done: int  # re-summarisations once this pass is done
    parts: Sequence[str]  # texts of the nodes that a merge makes one
    ledger: Ledger  # the notes before, of a pass for notes; else those beside the summary, for which there is room
    count: Callable[[str], int]
    budget: Decimal | None = None  # of the tenant's month, in US dollars; None: no limit
    asked: Asked | None = None  # what is sent, where it was made before
    redacted: Mapping[str, int] = field(default_factory=dict)  # secrets taken out of the span, by kind

    @property
    def reads_span(self) -> bool:
        """Whether the pass reads messages; else it reads summaries."""
        return self.kind not in (PassKind.RESUMMARIZE, PassKind.MERGE)

    @property
    def answer_tokens(self) -> int:
        """Room for the answer: twice the bound, so that a long summary is shortened rather than cut off."""
        window = self.model.window if self.model else 0
        return max(64, min(max(2 * self.bound, 1024), self.model.max_output if self.model else 0, window // 4))


@dataclass(frozen=True)
class Final:
    """A summary within its bound, and what is said of it in the log."""

    text: str
    sections: list[Section]
    method: Method
    dropped_content: list[dict[str, Any]]
    entities: list[str]
    notes: list[dict[str, Any]]
    ledger: tuple[Note, ...] = ()  # shown after the text, within the same bound


@dataclass(frozen=True)
class Spent:
    """What a call cost, whatever it gave."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: Any = None
    duration_ms: int = 0


@dataclass(frozen=True)
class Noted:
    """The ledger with the notes of what was read, and what is said of the others in the log."""

    ledger: tuple[Note, ...]
    notes: list[dict[str, Any]]


@dataclass(frozen=True)
class Result:
    """What a pass came to. Exactly one of `error`, `rejected`, `noted`, `more` (text to go on from), `final`."""

    spent: Spent
    read: tuple[int, int] | None = None  # first and last position in the input
    text: str = ""
    last_chunk: bool = True
    next_from: int | None = None  # where the next chunk begins; None: inside what this one reads
    called: bool = True  # a model was asked, where there is one
    error: CallError | None = None
    rejected: str = ""
    more: bool = False
    noted: Noted | None = None
    final: Final | None = None


@dataclass(frozen=True)
class Asked:
    """What a pass sends to its model, made before the call so that its price can be told."""

    prompt: prompt.Prompt
    chunk: chunks.Chunk | None
    last: bool  # of the chunks of the span
    next_from: int | None
    spoken: language.Expected | None  # the language the answer is to be in, where that is sure
    facts: tuple[str, ...]  # what it is to have word for word
