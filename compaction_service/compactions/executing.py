"""One pass outside any transaction: the model call or the extraction, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.conf import settings

from compaction_service.compactions.asking import ask
from compaction_service.compactions.models import Method, PassKind
from compaction_service.compactions.steps import Asked, Final, Model, Noted, Result, Spent, Step
from compaction_service.engine.summary import accept as acceptance
from compaction_service.engine.summary import bound as bounding
from compaction_service.engine.summary import extractive, files, language, notes_answer, noting, prompt, report
from compaction_service.engine.summary import notes as notes_of
from compaction_service.engine.summary import sections as sections_of
from compaction_service.engine.summary.notes import Found, Note
from compaction_service.engine.summary.sections import Section
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.llm.errors import CallError
from compaction_service.registry.specs import cost

MOST_TOKENS = 100_000_000  # of one call; a server that says more is not believed
MOST_LOGGED = 100  # notes that one pass says are gone
MOST_COST = 100_000  # US dollars of one call, likewise


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


def _ends(span: Sequence[SpanMessage]) -> tuple[int, int]:
    return span[0].position, span[-1].position
