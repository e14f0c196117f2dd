"""What a pass sends to its model: which chunk of the span, in which prompt, and what that is likely to cost."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice

from compaction_service.compactions.models import PassKind
from compaction_service.compactions.steps import Asked, Model, Step
from compaction_service.engine.summary import chunks, language, notes_prompt, preserve, prompt
from compaction_service.registry.specs import cost

MARKUP_TOKENS = 100  # kept free in the summariser's window for what the provider puts around messages
SAFETY = 0.9  # of the summariser's window by our count: its tokenizer may be another
SMALLEST_CHUNK = 512


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
