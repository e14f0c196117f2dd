"""The lines an extractive summary's sentences are shown in, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .gather import Layout, Sentence
from .lexicon import ERROR
from .span import Count

_PARAGRAPH = 400  # characters; then a new bullet
_ENDS = frozenset('.!?:;\u2026\u3002\uff01\uff1f\uff1b\u061f\u06d4\u0964"\u201d)]`')


def cost(sentence: Sentence, count: Count) -> float:
    """Tokens it takes. One of a paragraph pays its part of the paragraph's mark and label."""
    if not sentence.talk:
        return count(f"\n- {sentence.label}{sentence.text}")
    return count(f" {sentence.text}") + count(opening(sentence)) * len(sentence.text) / _PARAGRAPH


def opening(sentence: Sentence) -> str:
    return f"\n- {sentence.label}"


def group(sentence: Sentence) -> tuple[int | None, str] | None:
    """Of a paragraph: those of one group share its mark and label."""
    return (sentence.section, sentence.label) if sentence.talk else None


def placed(kept: Sequence[Sentence], layout: Layout, size: int) -> list[list[str]]:
    """The bullets of each section. Facts go to the sections nothing else goes to, spread over them in their order,
    errors to the one about errors."""
    places: list[list[Sentence]] = [[] for _ in range(size)]
    facts = []
    for sentence in kept:
        if sentence.section is not None:
            places[sentence.section].append(sentence)
        elif layout.errors is not None and ERROR.search(sentence.text):
            places[layout.errors].append(sentence)
        else:
            facts.append(sentence)
    for number, sentence in enumerate(facts):
        places[layout.facts[number * len(layout.facts) // len(facts)]].append(sentence)
    return [list(_bullets(place)) for place in places]


def _bullets(kept: Sequence[Sentence]) -> Iterator[str]:
    last: Sentence | None = None
    line = ""
    for sentence in kept:
        if last and _together(last, sentence, len(line)):
            line = f"{_ended(line)} {sentence.text}"
        else:
            if line:
                yield line
            line = f"- {sentence.label}{sentence.text}"
        last = sentence
    if line:
        yield line


def _together(last: Sentence, sentence: Sentence, so_far: int) -> bool:
    if (last.label, last.talk) != (sentence.label, sentence.talk):
        return False
    return last.line == sentence.line or (sentence.talk and so_far < _PARAGRAPH)


def _ended(line: str) -> str:
    """With a sign, where it stops inside a sentence."""
    return line if line[-1] in _ENDS else f"{line}\u2026"
