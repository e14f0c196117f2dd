"""Which answers of a model become a summary (semantics 7, Accept).

Peers stored empty answers, truncated ones, apologies, error pages and copies of their input as summaries, and lost the
history behind them. Here each has a reason code, and the caller falls back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .sections import Section, parse, render
from .span import Count
from .text import clean, words

Reason = Literal["empty", "truncated", "tool_call", "refusal", "echo", "sections_missing", "not_smaller"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer. `finish_reason` is OpenAI's word for it, as litellm normalises it."""

    text: str | None
    finish_reason: str | None
    tool_calls: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    text: str
    sections: list[Section]
    tokens: int


@dataclass(frozen=True, slots=True)
class Rejected:
    reason: Reason


def accept(answer: Answer, *, sections: Sequence[str], source: Iterable[str], replaced_tokens: int, count: Count) -> Accepted | Rejected:
    """The summary in an answer, or why there is none.

    `source`: the texts the call was given that an honest answer does not copy at length (the transcript and the
    system message; not a previous summary, which an update rightly repeats). `replaced_tokens`: tokens of what the
    summary would replace, by `count`.
    """
    if answer.tool_calls or answer.finish_reason in ("tool_calls", "function_call"):
        return Rejected("tool_call")
    if answer.finish_reason == "content_filter":
        return Rejected("refusal")
    if answer.finish_reason != "stop":
        return Rejected("truncated")
    text = unwrap(clean(answer.text or ""), sections)
    if _is_blank(text):
        return Rejected("empty")
    if is_refusal(text):
        return Rejected("refusal")
    if is_echo(text, source):
        return Rejected("echo")
    parsed = parse(text, sections)
    if parsed.missing:
        return Rejected("sections_missing")
    if parsed.sections:
        if all(_is_blank(section["text"]) for section in parsed.sections):
            return Rejected("empty")
        text = render(parsed.sections)
    tokens = count(text)
    return Accepted(text, parsed.sections, tokens) if tokens < replaced_tokens else Rejected("not_smaller")


_THINK = re.compile(r"\s*<(think|thinking|reasoning|thought)>", re.IGNORECASE)
_THINK_END = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_FENCED = re.compile(r"```(?:markdown|md|text)?[ \t]*\n(.*)\n```", re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<(summary|answer|output)>(.*)</\1>", re.DOTALL | re.IGNORECASE)
_BLANK = frozenset(
    ("", "none", "n/a", "na", "nothing", "null", "nil", "empty", "no summary", "todo", "undefined", "keine", "aucun", "ninguno", "нет", "无", "なし", "없음", "لا شيء")
)  # fmt: skip


def unwrap(text: str, sections: Sequence[str] = ()) -> str:
    """The answer without the thinking before it and without a fence or tag around all of it. Thinking that is never
    closed leaves nothing."""
    text = text.strip()
    start = 0
    while opened := _THINK.match(text, start):
        closed = _THINK_END.search(text, opened.end())
        if not closed:
            return ""
        start = closed.end()
    # Some chat templates open the thinking in the prompt, so that only its end is in the answer.
    closed = _THINK_END.search(text, start)
    if closed and not _THINK.search(text, start, closed.start()) and not parse(text[start : closed.start()], sections).sections:
        start = closed.end()
    text = text[start:].strip()
    for wrapper in (_FENCED, _TAGGED):
        if found := wrapper.fullmatch(text):
            text = found[found.lastindex or 1].strip()
    return text


def _is_blank(text: str) -> bool:
    return len(text) < 200 and " ".join(re.split(r"[\s#*_`.\-–—\[\]():!]+", text.casefold())).strip() in _BLANK


_REFUSALS = re.compile(
    "|".join(
        (
            r"(?:(?:i(?:'m| am) (?:very |so |truly )?)?sorry|i apologi[sz]e|my apologies|i regret)\b",
            r"as an ai\b",
            r"(?:unfortunately,? |however,? )?i(?:'m| am)? ?(?:not able|unable|can(?:'t|not| not)|could(?: not|n't)|won't|will not|must decline|do(?: not|n't) have)\b"
            r".{0,40}\b(?:help|assist|provide|summari[sz]e|comply|fulfil|continue|complete|access|process|generate|engage|create|discuss|answer|that|this|enough|any)",
            r"(?:there (?:is|was) no|no) (?:conversation|transcript|text|content|messages?)\b.{0,40}(?:provided|given|to summari[sz]e|found)",
            r"(?:please|could you(?: please)?|can you(?: please)?) (?:provide|share|paste|send)\b.{0,40}\b(?:conversation|transcript|text|content|messages?)",
            r"(?:es tut mir leid|tut mir leid|entschuldigung)|(?:leider )?(?:ich )?kann (?:ich )?.{0,40}nicht.{0,40}(?:helfen|zusammenfass|bereitstell|beantwort|erfüllen)",
            r"(?:je suis désolée?|désolée?)\b|je ne (?:peux|suis) pas.{0,40}(?:aider|fournir|résumer|répondre|mesure)",
            r"lo siento\b|no puedo.{0,20}(?:ayud|proporcion|resum|cumplir|respond)",
            r"(?:sinto muito|desculpe)\b|não posso.{0,20}(?:ajud|fornec|resum|respond)",
            r"mi dispiace\b|non posso.{0,20}(?:aiut|forni|riassum|rispond)",
            r"het spijt me|przykro mi|przepraszam|üzgünüm",
            r"(?:извините|простите)\b|(?:к сожалению,? )?я не могу.{0,30}(?:помо|предостав|выполн|обобщ|ответ)",
            r"很?抱歉|对不起|對不起|我(?:无法|無法|不能).{0,8}(?:协助|協助|帮|幫|提供|总结|總結|回答|完成|处理)",
            r"申し訳|(?:すみません|ごめんなさい)[。、]",
            r"죄송|미안",
            r"عذر|آسف|أعتذر|لا (?:أستطيع|يمكنني)",
            r"क्षमा करें|मुझे खेद",
            r"ขออภัย|ขอโทษ",
        )
    ),
    re.IGNORECASE,
)
_ERRORS = re.compile(
    r"<!doctype html|<html|\{\s{0,8}\"(?:error|detail|message)\"|traceback \(most recent call last\)|[\w.]{0,60}(?:error|exception)\s{0,3}[:(]"
    r"|(?:http(?:/\d(?:\.\d)?)? |(?:api )?error (?:code:? )?)[45]\d\d\b|[45]\d\d (?:internal|bad|service|gateway|too many|not found|unauthori|forbidden)"
    r"|(?:an )?(?:internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|rate limit|request timed out"
    r"|connection (?:error|refused|reset)|(?:unexpected )?error occurred|context length exceeded)",
    re.IGNORECASE,
)
_SHORT = 400  # characters without headings


def is_refusal(text: str) -> bool:
    """A refusal or an error instead of a summary: the text begins so, or it is short and a line of it does."""
    plain = text.replace("’", "'")
    if _REFUSALS.match(plain[:300]) or _ERRORS.match(plain[:300]):
        return True
    lines = [line.strip(" \t-*>_") for line in plain.splitlines() if not line.lstrip().startswith(("#", "**"))]
    return sum(map(len, lines)) < _SHORT and any(_REFUSALS.match(line) for line in lines)


_SHINGLE = 12  # words that in a row are copied, not said again
_LONG = 40  # words; a shorter answer may well be one quotation
_COPIED = 0.7


def is_echo(text: str, source: Iterable[str]) -> bool:
    """The text repeats what it was made from: our own markup, or most of it in long runs of the source's words.

    Linear in text and source, memory in the text alone."""
    if text.count('<message position="') > 1:
        return True
    own = words(text)
    if len(own) < _LONG:
        return False
    # Character pairs stand for about half a word each.
    size = _SHINGLE if sum(map(len, own)) > 3 * len(own) else 2 * _SHINGLE
    places: dict[int, list[int]] = {}
    for at in range(len(own) - size + 1):
        places.setdefault(hash(tuple(own[at : at + size])), []).append(at)
    copied = bytearray(len(own))
    for part in source:
        theirs = words(part)
        for at in range(len(theirs) - size + 1):
            for place in places.pop(hash(tuple(theirs[at : at + size])), ()):
                copied[place : place + size] = b"\1" * size
    return sum(copied) >= _COPIED * len(own)
