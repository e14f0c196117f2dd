"""One pass outside any transaction: what it needs, the model call or the extraction, and what came of it.

No database here: a step holds all it needs, and a result says what happened. jobs.py decides what is written.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any

from django.conf import settings

from compaction_service.compactions.models import Method, PassKind
from compaction_service.engine.policy import Policy
from compaction_service.engine.summary import accept as acceptance
from compaction_service.engine.summary import bound as bounding
from compaction_service.engine.summary import (
    chunks,
    extractive,
    files,
    language,
    notes_answer,
    notes_prompt,
    noting,
    preserve,
    prompt,
    report,
)
from compaction_service.engine.summary import notes as notes_of
from compaction_service.engine.summary import sections as sections_of
from compaction_service.engine.summary.notes import Found, Ledger, Note
from compaction_service.engine.summary.sections import Section
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.llm.errors import CallError
from compaction_service.registry.specs import ModelSpec, cost

MARKUP_TOKENS = 100  # kept free in the summariser's window for what the provider puts around messages
SAFETY = 0.9  # of the summariser's window by our count: its tokenizer may be another
SMALLEST_CHUNK = 512
MOST_TOKENS = 100_000_000  # of one call; a server that says more is not believed
MOST_LOGGED = 100  # notes that one pass says are gone
MOST_COST = 100_000  # US dollars of one call, likewise


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


def ask(step: Step, model: Model) -> Asked:
    """The prompt of a pass, of the chunk that it reads. No more of the span is rendered than that and what follows."""
    spoken = language.expected(step.policy.language, step.span or step.unread, step.parts or [step.previous])
    if not step.reads_span:
        facts = _facts(step, None)
        return Asked(_prompt(step, model, None, facts, last=True, spoken=spoken), None, True, None, spoken, facts)
    found = list(islice(chunks.each(step.unread, chunk_size(step, model), step.count), step.chunk, step.chunk + 2))
    chunk, following = found[0], found[1] if len(found) > 1 else None
    last = following is None and step.whole
    begins = following.positions[0] if following else step.unread[-1].position + 1
    next_from = begins if begins > chunk.positions[-1] and not last else None
    facts = _facts(step, chunk)
    return Asked(_prompt(step, model, chunk, facts, last=last, spoken=spoken), chunk, last, next_from, spoken, facts)


def price(step: Step, model: Model, asked: Asked) -> Decimal | None:
    """The most a call is likely to cost, US dollars; None: nobody knows. Its tokenizer may count more than ours."""
    tokens = int((step.count(asked.prompt.system) + step.count(asked.prompt.user) + MARKUP_TOKENS) / SAFETY)
    return cost(model.spec, tokens, step.answer_tokens)


def execute(step: Step) -> Result:
    """Run the pass. Raises nothing a model or a transcript could cause."""
    return _extract(step) if step.model is None else _call(step, step.model, step.asked or ask(step, step.model))


def _extract(step: Step) -> Result:
    """Without a model: the summary of the whole span at once, or the cut of one that is too long (semantics 7)."""
    if step.kind == PassKind.NOTES:
        return _noted(step, Result(Spent(), read=_ends(step.unread)), noting.noted(step.unread, step.ledger.notes))
    if step.kind == PassKind.RESUMMARIZE:
        text = bounding.cut(step.text, step.bound, step.count)
        sections = sections_of.parse(text, step.policy.summary_sections).sections
        notes = [{"cut_from_tokens": step.text_tokens, "to_tokens": step.count(text)}]
        return Result(Spent(), text=text, final=_final(step, text, sections, Method.LLM, notes))
    if step.kind == PassKind.MERGE:
        merged = extractive.merge(step.parts, step.policy.summary_sections, step.target, step.count, step.focus)
        text, sections = merged.text, merged.sections
        notes = [{"cut_from_tokens": step.replaced_tokens, "to_tokens": step.count(text)}]
        return Result(Spent(), text=text, final=_final(step, text, sections, Method.EXTRACTIVE, notes))
    made = extractive.extract(
        step.span,
        sections=step.policy.summary_sections,
        bound=step.bound,
        target=step.target,
        count=step.count,
        previous=step.previous or None,
        focus=step.focus,
    )
    wished = language.expected(step.policy.language, ())
    other = wished is not None and language.is_other(made.text, wished)  # its words are the conversation's own
    said = [{"language_not_followed": step.policy.language}] if other else []
    final = _final(step, made.text, made.sections, Method.EXTRACTIVE, said)
    return Result(Spent(), read=_ends(step.span), text=made.text, final=final)


def _call(step: Step, model: Model, asked: Asked) -> Result:
    from compaction_service.llm.client import CompletionRequest, complete

    chunk = asked.chunk
    read = None if chunk is None else (min(chunk.positions), max(chunk.positions))
    about: dict[str, Any] = {"read": read, "last_chunk": asked.last, "next_from": asked.next_from}
    begun = time.monotonic()
    try:
        done = complete(
            CompletionRequest(
                model=model.name,
                system=asked.prompt.system,
                user=asked.prompt.user,
                max_tokens=step.answer_tokens,
                timeout=settings.MODEL_CALL_TIMEOUT,
                api_base=model.api_base,
                api_key=model.api_key,
                extra_headers=dict(model.extra_headers or {}),
                allow_local=model.allow_local,
            )
        )
    except CallError as error:
        return Result(Spent(duration_ms=round((time.monotonic() - begun) * 1000)), error=error, **about)
    tokens_in = _told(done.tokens_in, lambda: step.count(asked.prompt.system) + step.count(asked.prompt.user))
    tokens_out = _told(done.tokens_out, lambda: step.count(done.text))
    spent = Spent(tokens_in, tokens_out, _cost(done.cost, model, tokens_in, tokens_out), done.duration_ms)
    answer = acceptance.Answer(done.text, done.finish_reason, done.tool_calls)
    if step.kind == PassKind.NOTES:
        shown = [message for message in step.unread if chunk and message.position in chunk.positions]
        heard = notes_answer.read(answer, shown, step.ledger.notes)
        if isinstance(heard, str):
            return Result(spent, rejected=heard, **about)
        return _noted(step, Result(spent, **about), heard.found, heard.not_borne_out)
    judged = acceptance.accept(
        answer,
        sections=step.policy.summary_sections,
        source=(asked.prompt.system, *(() if chunk is None else (chunk.text,))),
        rules=prompt.RULES,
        replaced_tokens=step.replaced_tokens,
        count=step.count,
        language=asked.spoken,
        kept=asked.facts,
    )
    if isinstance(judged, acceptance.Rejected):
        return Result(spent, rejected=judged.reason, **about)
    if not asked.last:
        text = judged.text if judged.tokens <= step.bound else bounding.cut(judged.text, step.bound, step.count)
        return Result(spent, text=text, more=True, **about)
    return _bounded(step, spent, read, judged)


def _noted(step: Step, result: Result, found: Sequence[Found], not_borne_out: Sequence[Note] = ()) -> Result:
    """The result with the ledger that has these notes, within its room."""
    ledger = notes_of.merged(step.ledger.notes, found, step.bound, step.count)
    gone = [
        *notes_of.logged(ledger.replaced, "replaced"),
        *notes_of.logged(ledger.no_room, "no_room"),
        *notes_of.logged(not_borne_out, "not_borne_out"),
    ]
    text = "\n".join(one.note.line for one in found)
    return replace(result, text=text, noted=Noted(ledger.notes, gone[:MOST_LOGGED]))


def _told(tokens: int | None, count: Callable[[], int]) -> int:
    """What the provider says was used; our own count where it says nothing or nothing that can be."""
    return tokens if tokens is not None and 0 <= tokens <= MOST_TOKENS else count()


def _cost(told: Decimal | None, model: Model, tokens_in: int, tokens_out: int) -> Decimal | None:
    """What the call cost: by the price map of the call, else by the registry's prices; None where neither tells."""
    found = told if told is not None else cost(model.spec, tokens_in, tokens_out)
    return found if found is not None and 0 <= found <= MOST_COST else None


def _bounded(step: Step, spent: Spent, read: tuple[int, int] | None, judged: acceptance.Accepted) -> Result:
    """Fits; or goes on to the next pass; or is cut on sentence edges (semantics 7, Bound)."""
    follows = bounding.next_step(
        step.text_tokens, judged.tokens, step.bound, step.passes_done, step.policy.resummarize_max_passes
    )
    if follows == "again":
        return Result(spent, read=read, text=judged.text, more=True)
    text, sections = judged.text, judged.sections
    notes: list[dict[str, Any]] = []
    if follows == "cut":
        text = bounding.cut(text, step.bound, step.count)
        sections = sections_of.parse(text, step.policy.summary_sections).sections
        notes = [{"cut_from_tokens": judged.tokens, "to_tokens": step.count(text)}]
    return Result(spent, read=read, text=text, final=_final(step, text, sections, Method.LLM, notes))


def _final(
    step: Step, text: str, sections: list[Section], method: Method, notes: Sequence[dict[str, Any]] = ()
) -> Final:
    """Active files verified, what was dropped named, and the bound held again after both."""
    headings = step.policy.summary_sections
    room = max(0, step.bound // 4)
    sections, invented = files.with_active_files(sections, step.span, step.previous, room=room, count=step.count)
    if sections:
        text = sections_of.render(sections)
    if step.count(text) > step.bound:
        text = bounding.cut(text, step.bound, step.count)
        sections = sections_of.parse(text, headings).sections
    extra: list[dict[str, Any]] = [{"invented_files": invented}] if invented else []
    extra += notes_of.logged(step.ledger.no_room, "no_room")[:MOST_LOGGED]
    if step.redacted:
        extra.append({"redacted": dict(step.redacted)})
    whole = notes_of.joined(text, step.ledger.notes)
    said = [one["text"] for one in sections] or [text]
    return Final(
        text=text,
        sections=sections,
        method=method,
        dropped_content=[
            dict(one) for one in report.dropped_content(step.span, whole, before=step.before, carried=step.carried)
        ],
        entities=report.preserved(
            report.entities("\n".join((*said, *(one.text for one in step.ledger.notes)))), step.span, step.previous
        ),
        notes=[*notes, *extra],
        ledger=step.ledger.notes,
    )


def chunk_size(step: Step, model: Model) -> int:
    """Tokens of the chunks that the unread span is cut into."""
    return step.chunk_tokens or chunk_budget(step, model)


def chunk_budget(step: Step, model: Model) -> int:
    """Raw tokens of transcript that one call can read beside its answer and all else that is in the prompt.

    The running summary will be as long as a whole answer, and no longer than the bound.
    """
    empty = _prompt(step, model, chunks.Chunk("", (), 0), (), last=True)
    running = max(0, min(step.bound, step.answer_tokens) - step.count(step.previous))
    beside = step.count(empty.system) + step.count(empty.user) + MARKUP_TOKENS + running + step.answer_tokens
    beside += min(step.target, step.bound) // preserve.SHARE
    return max(SMALLEST_CHUNK, int((model.window - beside) * SAFETY))


def _tail_tokens(model: Model) -> int:
    return min(chunks.TAIL_TOKENS, model.window // 8)


def _prompt(
    step: Step,
    model: Model,
    chunk: chunks.Chunk | None,
    facts: tuple[str, ...],
    *,
    last: bool,
    spoken: language.Expected | None = None,
) -> prompt.Prompt:
    wanted = prompt.Wanted(
        sections=step.policy.summary_sections,
        # An answer that a small model cannot end would be refused as truncated.
        target=min(step.target, step.bound, step.answer_tokens * 3 // 4),
        bound=min(step.bound, step.answer_tokens),
        focus=step.focus,
        instructions="\n".join(filter(None, (step.policy.instructions, step.instructions))),
        language=step.policy.language or (spoken.language.english if spoken else ""),
        preserved=facts,
        notes="\n".join(f"- {one.line}" for one in step.ledger.notes),
    )
    if step.kind == PassKind.NOTES:
        return notes_prompt.notes(
            "" if chunk is None else chunk.text,
            known=step.previous,
            budget=step.bound,
            focus=step.focus,
            instructions=wanted.instructions,
        )
    if step.kind == PassKind.MERGE:
        return prompt.merge(wanted, step.parts)
    if chunk is None:
        return prompt.resummarize(wanted, step.text)
    if not last:
        number = step.part + 1
        total = number + max(1, -(-step.unread_tokens // max(1, chunk.tokens)) - 1)
        return prompt.chunk(wanted, chunk.text, number, total, running=step.previous)
    tail = chunks.tail_end(step.tail, step.count, _tail_tokens(model)) if step.tail else ""
    return prompt.summary(wanted, chunk.text, previous=step.previous, tail=tail)


def _facts(step: Step, chunk: chunks.Chunk | None) -> tuple[str, ...]:
    """What the answer is to have word for word: of what is said so far, and of the messages this pass reads."""
    if step.kind == PassKind.NOTES:
        return ()
    before = step.text if step.kind == PassKind.RESUMMARIZE else "\n".join(step.parts) or step.previous
    positions = set(chunk.positions) if chunk else set()
    read = [message for message in step.unread if message.position in positions]
    room = min(step.target, step.bound) // preserve.SHARE
    return preserve.facts(before, read, room, step.count, known="\n".join(note.text for note in step.ledger.notes))


def _ends(span: Sequence[SpanMessage]) -> tuple[int, int]:
    return span[0].position, span[-1].position
