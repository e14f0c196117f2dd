"""What a summary kept and what it dropped, told without a model (semantics 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypedDict

from .checklist import referred
from .files import call_values
from .gather import is_printed, unmarked
from .lexicon import NO_NAME
from .sections import item, meaning
from .span import SpanMessage
from .terms import backticked, terms
from .text import clean, sentences, words

MAX_ENTITIES = 50
MAX_DROPPED = 100
MAX_TEXT = 200  # characters of one entry
_MIN_REQUEST_WORDS = 3  # "ok, thanks" says nothing that could be dropped
_AROUND = "\"'()[]{}<>*_`,.;:!?\u2018\u2019\u201c\u201d\xab\xbb\u2026"
_INSIDE = dict.fromkeys(map(ord, "-'\u2019"))
_SAID_AGAIN = 0.6  # of a request's words and of what it names; so many in the summary, and it is in it
_FIRST_CHARS, _FIRST_LEAST = 2000, 20  # where the first sentence is looked for, and how long it must be to tell


class Dropped(TypedDict):
    position: int | None  # None: of an older summary, which does not say it
    kind: Literal["request", "identifier"]
    text: str


def entities(source: str | Iterable[SpanMessage]) -> list[str]:
    """Names in a text or in messages, in order of first mention, at most 50: paths, URLs, identifiers, whatever
    stands in backticks, and capitalised names of two words or more."""
    texts = (
        [source]
        if isinstance(source, str)
        else (p.text for m in source for p in m.parts if p.kind in ("text", "call", "result"))
    )
    found: dict[str, None] = {}
    for text in texts:
        for line in clean(text).splitlines():
            found.update(dict.fromkeys(_entities(line)))
            if len(found) >= MAX_ENTITIES:
                return list(found)[:MAX_ENTITIES]
    return list(found)


def preserved(names: Iterable[str], messages: Sequence[SpanMessage], known_text: str = "") -> list[str]:
    """Those of a summary's names that the span or `known_text` (the summary before) has, in any case: what a model made
    up was not preserved."""
    said = (text for m in messages for text in m.texts("text", "result"))
    called = (f"{text} {call_values(text)}" for m in messages for text in m.texts("call"))
    texts = [" ".join(text.casefold().split()) for text in (known_text, *said, *called)]
    return [name for name in names if any(name.casefold() in text for text in texts)]


def _entities(line: str) -> Iterator[str]:
    yield from (term.text for term in terms(line) if term.kind != "number")
    yield from (name.strip() for name in backticked(line) if name.strip())
    for sentence in sentences(line):
        yield from _names(sentence)


def _names(sentence: str) -> Iterator[str]:
    """Runs of at least two capitalised words."""
    run: list[str] = []
    for token in [*sentence.split(), ""]:
        word = token.strip(_AROUND)
        capital = len(word) > 1 and word[0].isupper() and word.translate(_INSIDE).isalpha()
        if capital and not (not run and word.casefold() in NO_NAME):
            run.append(word)
            if token.endswith(word):
                continue  # no punctuation after it: the name may go on
        if 2 <= len(run) <= 6 and not all(map(str.isupper, run)):
            yield " ".join(run)
        run = []


def dropped_content(
    messages: Sequence[SpanMessage], summary_text: str, *, before: str = "", carried: Collection[int] = ()
) -> list[Dropped]:
    """User requests and key identifiers that are not in the summary, by position, at most 100: those of the span, and
    those that `before`, the summaries it replaces, still had. Messages at the positions `carried` are shown beside it.

    A request is in it when its first sentence is, or most of its words and of what it names. Key identifiers are those
    that users and the agent wrote, in text or in calls; what only tools printed is not counted."""
    beside = [text for message in messages if message.position in carried for text in message.texts("text", "call")]
    shown = "\n".join([summary_text, *beside])
    shown_words = set(words(shown))
    out: list[Dropped] = []
    seen: set[str] = set()

    def identifiers(text: str, position: int | None) -> None:
        for term in terms(clean(text)):
            if term.kind != "number" and term.text not in seen:
                seen.add(term.text)
                if term.text not in shown:
                    out.append({"position": position, "kind": "identifier", "text": term.text[:MAX_TEXT]})

    for position, request, text in _told(before):
        if request and not _is_said(request, shown, shown_words):
            out.append({"position": position, "kind": "request", "text": request[:MAX_TEXT]})
        identifiers(text, position)
    for message in messages:
        if message.request and not _is_said(text := "\n".join(message.texts("text")), shown, shown_words):
            out.append({"position": message.position, "kind": "request", "text": clean(text).strip()[:MAX_TEXT]})
        for text in (*message.texts("text"), *map(call_values, message.texts("call"))):
            identifiers(text, message.position)
    # Requests weigh more than names where there is no room for all.
    out.sort(key=lambda dropped: dropped["kind"] != "request")
    return sorted(out[:MAX_DROPPED], key=lambda dropped: dropped["position"] or 0)


def _told(summary_text: str) -> Iterator[tuple[int | None, str, str]]:
    """What a summary says, sentence by sentence: the position of the request it is of, where that is told, the request,
    where it is of one, and the text. Requests are what the section about the goal has, and items that name a position.
    """
    about = ""
    for line in clean(summary_text).splitlines():
        if line.startswith("## "):
            about = meaning(line)
        elif checked := item(line):
            request, position = referred(checked["text"])
            yield position, request if position else "", request
        elif about == "goal":
            yield from ((None, sentence, sentence) for sentence in sentences(unmarked(line)))
        elif not is_printed(line):
            yield None, "", line


def _is_said(request: str, summary_text: str, summary_words: set[str]) -> bool:
    """Whether its first sentence is there word for word, or most of its words and most of the things it names: requests
    of one kind share their words, and are told apart by what they are about."""
    distinct = set(words(request))
    if len(distinct) < _MIN_REQUEST_WORDS:
        return True
    first = next(iter(sentences(clean(request)[:_FIRST_CHARS])), "")
    if len(first) >= _FIRST_LEAST and first in summary_text:
        return True
    named = {term.text for term in terms(clean(request))}
    most_named = not named or sum(name in summary_text for name in named) >= _SAID_AGAIN * len(named)
    return most_named and len(distinct & summary_words) >= _SAID_AGAIN * len(distinct)
