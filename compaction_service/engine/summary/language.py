"""The language of a text, told cheaply, and whether an answer is in another than was wanted (semantics 7, Prompt).

A wrong refusal costs a good summary, so an answer is refused only where both are sure: the language that was wanted,
and that the answer is in another, of which neither the requests nor the responses of the conversation have much.
Scripts are told by their letters, languages of one script by the small words that only one of the two has.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .languages import LANGUAGES, Language
from .span import SpanMessage
from .text import words

_RANGES = {
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "greek": "\u0370-\u03ff",
    "cyrillic": "\u0400-\u052f",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
    "devanagari": "\u0900-\u097f",
    "bengali": "\u0980-\u09ff",
    "tamil": "\u0b80-\u0bff",
    "thai": "\u0e00-\u0e7f",
    "kana": "\u3040-\u30ff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "han": "\u3400-\u4dbf\u4e00-\u9fff",
}
_RUNS = {name: re.compile(f"[{letters}]+") for name, letters in _RANGES.items()}
# A sign of these says about as much as two letters of others.
_DENSE = frozenset(("kana", "hangul", "han"))
# What is in no language: code, paths, names with digits or marks inside, URLs, headings, quotations.
_NO_LANGUAGE = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^#{1,6}[^\n]*$|^>[^\n]*$|\"[^\"\n]{1,300}\"|\u201c[^\u201d\n]{1,300}\u201d|\S{0,80}[/\\_=<>{}@\d]\S{0,300}",
    re.DOTALL | re.MULTILINE,
)

SAMPLE_CHARS = 400  # of one message: its beginning
SAMPLES = 200  # messages of a group, spread evenly
ANSWER_CHARS = 20_000  # that are looked at
MIN_WORDS = 25  # in a text whose language is told
_SHARE = 0.15  # of a text's words, its language's small ones; usual is a quarter to a half
_LEAST = 0.04  # of a text's words, those that tell its language from another
_CLEARLY = 4  # times as many as those that tell the opposite
_OTHER_SCRIPT = 0.1  # of the letters; under it, a text is not in that script
_MOSTLY = 0.6


@dataclass(frozen=True, slots=True)
class Sample:
    """What is counted of a text: letters by script, and its words by number."""

    scripts: Counter[str]
    words: Counter[str]

    @property
    def letters(self) -> int:
        return self.scripts.total()

    def share(self, script: str) -> float:
        """Of the letters, those of a script; Japanese is written with Chinese signs too."""
        own = self.scripts[script] + (self.scripts["han"] if script == "kana" and self.scripts["kana"] else 0)
        return own / max(1, self.letters)

    def share_of(self, language: Language) -> float:
        """Of the words, the small ones of a language."""
        return self._among(language.words)

    def only(self, one: Language, other: Language) -> float:
        """Of the words, those that `one` has and `other` has not."""
        return self._among(one.words - other.words)

    def _among(self, small: frozenset[str]) -> float:
        return sum(self.words[word] for word in self.words.keys() & small) / max(1, self.words.total())


@dataclass(frozen=True, slots=True)
class Expected:
    """The language an answer is to be in. `heard`: what may excuse another one; empty where a policy names it."""

    language: Language
    heard: tuple[Sample, ...] = ()


def sample(texts: Iterable[str]) -> Sample:
    """Counts of some texts together, what is in no language left out."""
    text = unicodedata.normalize("NFC", _NO_LANGUAGE.sub(" ", "\n".join(texts)))
    scripts = Counter({name: sum(map(len, runs.findall(text))) for name, runs in _RUNS.items()})
    for name in _DENSE:
        scripts[name] *= 2
    return Sample(scripts, Counter(words(text)))


def told(of: Sample) -> Language | None:
    """The language, where it is sure."""
    script = max(_RUNS, key=of.share)
    if of.share(script) < _MOSTLY:
        return None
    if script in ("han", "kana"):
        return _chinese_or_japanese(of)
    own = [language for language in LANGUAGES.values() if language.script == script]
    if len(own) == 1:
        return own[0] if of.letters >= MIN_WORDS else None
    if of.words.total() < MIN_WORDS or not own[0].words:
        return None
    best = max(own, key=of.share_of)
    if of.share_of(best) < _SHARE:
        return None
    return best if all(_is(of, best, other) for other in own if other is not best) else None


def _is(of: Sample, one: Language, other: Language) -> bool:
    """One language and clearly not the other, where both have small words; else it may be."""
    mine, theirs = of.only(one, other), of.only(other, one)
    return mine >= _LEAST and mine >= _CLEARLY * theirs


def _chinese_or_japanese(of: Sample) -> Language | None:
    kana = of.scripts["kana"] / max(1, of.scripts["kana"] + of.scripts["han"])
    if of.letters < 2 * MIN_WORDS or 0.02 < kana < 0.1:
        return None
    return LANGUAGES["ja" if kana >= 0.1 else "zh"]


def named(given: str) -> Language | None:
    """The language a policy means by a name, a code or a longer wish ("pt-BR", "Brazilian Portuguese", "Deutsch")."""
    words = [word for word in re.split(r"[\s,;()/_-]+", given.casefold()) if word]
    for name in (given.strip().casefold(), *words):
        for language in LANGUAGES.values():
            if name in language.names:
                return language
    return None


def expected(wish: str | None, messages: Sequence[SpanMessage], known: Sequence[str] = ()) -> Expected | None:
    """What language a summary of these messages is to be in; None where that is not sure.

    `wish`: the policy's. Without one it is the language of what people and the agent said (never of what tools
    printed), or, where there are no messages, of the `known` summaries.
    """
    if wish and wish.strip():
        found = named(wish)
        return Expected(found) if found else None
    groups = [
        _said(message for message in messages if message.role == "user"),
        _said(message for message in messages if message.role == "assistant"),
        list(known),
    ]
    heard = tuple(sample(texts) for texts in groups if texts)
    own = told(sample(text for texts in groups[:2] for text in texts)) if any(groups[:2]) else None
    if own is None and not messages and heard:
        own = told(heard[-1])
    return Expected(own, heard) if own else None


def _said(messages: Iterable[SpanMessage]) -> list[str]:
    texts = ["\n".join(message.texts("text"))[:SAMPLE_CHARS] for message in messages]
    texts = [text for text in texts if text.strip()]
    step = max(1, len(texts) // SAMPLES)
    return texts[::step]


def is_other(answer: str, wanted: Expected) -> bool:
    """The answer is surely in another language than the wanted one, and the conversation has next to nothing of it."""
    own = sample([answer[:ANSWER_CHARS]])
    found = told(own)
    if found is None or found is wanted.language or _alike(own, found, wanted.language):
        return False
    return not any(_has(heard, found, wanted.language) for heard in wanted.heard)


def _alike(own: Sample, found: Language, wanted: Language) -> bool:
    """There is something of the wanted language in the answer, or the two cannot be told apart."""
    if found.script == wanted.script:
        return not (found.words and wanted.words) or not _is(own, found, wanted)
    if {found.script, wanted.script} == {"han", "kana"}:
        return False
    return own.share(wanted.script) >= _OTHER_SCRIPT


def _has(heard: Sample, found: Language, wanted: Language) -> bool:
    """Whether a group of the conversation's texts may be in the answer's language."""
    if found.script != wanted.script and {found.script, wanted.script} != {"han", "kana"}:
        return heard.share(found.script) >= _OTHER_SCRIPT and told(heard) is not wanted
    if found.words and wanted.words:
        return heard.only(found, wanted) > heard.only(wanted, found) / _CLEARLY
    return told(heard) is not wanted
