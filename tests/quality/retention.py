"""How much of what a question needs is still in a summary. No model reads it: what is counted is kept words.

Of a question, its answer and the turns that hold its evidence:

    contain   the answer's words stand in the summary in a row
    tokrec    the share of the answer's content words that are anywhere in the summary
    full      all of them are
    evid      the share of its evidence turns of which at least half the words are kept
    evall     all of its evidence turns are so kept
    local     of the answer's content words that its evidence turns hold, the share kept from those turns;
              a question whose evidence holds none of them does not count

Words are compared in lower case, stemmed as LoCoMo's own evaluation does (NLTK's Porter), without articles. Content
words are those that are no stop words (scikit-learn's list); an answer of stop words only is taken as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from nltk.stem.porter import PorterStemmer

_TOKEN = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "and", "the"))
_STOP_WORDS = frozenset((Path(__file__).parent / "stop_words.txt").read_text(encoding="utf-8").split())
_EDGE = re.compile(r"""(?<=[.!?\u2026;\])])\s+|(?<=[.!?]["'\u201d)])\s+|\s+(?=\[)""")
_FORM = re.compile(r"^- (?:\[[ x]\] )?(?:\[?\d{4}-\d\d-\d\d\]?:? )?| \(#\d+\)$")

_stem = cache(PorterStemmer().stem)


@dataclass(frozen=True, slots=True)
class Question:
    answer: str
    evidence: tuple[str, ...]  # ids of turns
    category: int = 0


def words(text: str) -> int:
    """Its length: what stands between blanks, list marks and hashes too."""
    return len(text.split())


def tokens(text: str) -> list[str]:
    return [_stem(word) for word in _TOKEN.findall(text.lower()) if word not in _ARTICLES]


def content(text: str) -> set[str]:
    found = {_stem(word) for word in _TOKEN.findall(text.lower()) if word not in _ARTICLES and word not in _STOP_WORDS}
    return found or set(tokens(text))


class Kept:
    """What a summary kept of the turns it was made from: a sentence of it that stands in a turn, word for word and in a
    row, is kept from that turn. Where several turns say the same it counts for each."""

    def __init__(self, turns: Mapping[str, str], summary: str) -> None:
        rows = {name: tokens(text) for name, text in turns.items()}
        self.turns = {name: set(row) for name, row in rows.items()}
        self.row = _row(tokens(summary))
        self.all = set(self.row.split())
        self.of_turn: dict[str, set[str]] = defaultdict(set)
        holders: dict[str, list[str]] = defaultdict(list)
        for name, found in self.turns.items():
            for token in found:
                holders[token].append(name)
        lines = {name: _row(row) for name, row in rows.items()}
        for piece in map(tokens, _pieces(summary)):
            rarest = min((holders.get(token, []) for token in piece), key=len, default=[])
            for name in rarest:
                if _row(piece) in lines[name]:
                    self.of_turn[name].update(piece)

    def share(self, name: str) -> float:
        return len(self.of_turn[name]) / (len(self.turns[name]) or 1)


def _row(found: Sequence[str]) -> str:
    return f" {' '.join(found)} "


def _pieces(summary: str) -> Iterator[str]:
    """Its sentences, without what the summary's form adds: list marks, dates, message numbers."""
    for line in summary.splitlines():
        yield from (piece for piece in _EDGE.split(_FORM.sub("", line)) if piece)


def scores(questions: Iterable[Question], kept: Kept) -> Iterator[dict[str, float]]:
    """Each question's figures; one that cannot be told is absent."""
    for question in questions:
        wanted = content(question.answer)
        turns = [name for name in question.evidence if name in kept.turns]
        found = len(wanted & kept.all) / len(wanted) if wanted else 0.0
        one = {
            "contain": float(f" {' '.join(tokens(question.answer))} " in kept.row),
            "tokrec": found,
            "full": float(found == 1),
        }
        if turns:
            halves = [kept.share(name) >= 0.5 for name in turns]
            one |= {"evid": fmean(halves), "evall": float(all(halves))}
        held = wanted & set().union(*(kept.turns[name] for name in turns))
        if held:
            one["local"] = len(held & set().union(*(kept.of_turn[name] for name in turns))) / len(held)
        yield one


def means(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    columns: dict[str, list[float]] = defaultdict(list)
    for one in found:
        for name, value in one.items():
            columns[name].append(value)
    return {name: fmean(values) for name, values in columns.items()}
