"""Notes of a span without a model: sentences that say outright what they are (`cues`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .cues import CUES
from .lexicon import QUESTION_ENDS
from .notes import Found, Kind, Note, note
from .span import SpanMessage
from .text import sentences, words

_MOST = 200  # notes of one span: the most important, of these the newest
_LEAST_WORDS = 3  # "decision made." says nothing
_IMPORTANCE: dict[Kind, int] = {
    "correction": 4,
    "decision": 4,
    "preference": 3,
    "commitment": 3,
    "open_question": 3,
    "fact": 2,
}
_REPLACED = 0.5  # of an older note's words; so many in a correction, and it replaces the note


def noted(messages: Sequence[SpanMessage], known: Sequence[Note] = ()) -> list[Found]:
    """Notes of what users and the agent said, in order; never of what tools printed. Deterministic, linear in the text.

    A correction replaces the newest note, known or of this span, that it shares half of the words with.
    """
    best = sorted(_said(messages), key=lambda one: (-one.importance, -one.positions[-1]))[:_MOST]
    older = [_telling(one.text) for one in known]
    found: list[tuple[Found, frozenset[str]]] = []
    for one in sorted(best, key=lambda one: one.positions):
        said = _telling(one.text)
        replaces: tuple[int, ...] = ()
        if one.kind == "correction":
            at = _newest_of(said, [telling for _, telling in found])
            if at is not None:
                found.pop(at)
            elif (at := _newest_of(said, older)) is not None:
                replaces = (at,)
        found.append((Found(one, replaces), said))
    return [one for one, _ in found]


def _said(messages: Sequence[SpanMessage]) -> Iterator[Note]:
    for message in messages:
        if message.role not in ("user", "assistant"):
            continue
        for text in message.texts("text"):
            for sentence in sentences(text):
                kind = _kind(sentence)
                if kind is None or len(words(sentence)) < _LEAST_WORDS:
                    continue
                # What the agent says of its work is worth less than the same word of a user.
                importance = _IMPORTANCE[kind] - (not message.request)
                yield note(kind, importance, sentence, [message.position])


def _kind(sentence: str) -> Kind | None:
    """What the sentence says outright to be; what is asked is an open question or nothing."""
    lower = sentence.casefold().replace("\u2019", "'")
    kind = next((kind for kind, cue in CUES if cue.search(lower)), None)
    return None if sentence.endswith(QUESTION_ENDS) and kind != "open_question" else kind


def _telling(text: str) -> frozenset[str]:
    """The words that say what it is about: short ones of scripts with blanks hardly do."""
    return frozenset(word for word in words(text) if len(word) > 3 or not word.isascii())


def _newest_of(said: frozenset[str], notes: Sequence[frozenset[str]]) -> int | None:
    """The last of these notes that a correction with the words `said` is about."""
    return next((i for i in reversed(range(len(notes))) if _is_about(said, notes[i])), None)


def _is_about(said: frozenset[str], note_words: frozenset[str]) -> bool:
    return bool(note_words) and len(said & note_words) >= _REPLACED * len(note_words)
