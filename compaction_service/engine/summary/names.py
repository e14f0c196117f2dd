"""The line of exact names at the end of an extractive summary's facts: identifiers nothing else in it shows.

One code span, "- Also named: `getUser, ERR_42, https://...`", so that the next round recognises it and carries it on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from .files import call_values
from .lexicon import PLAIN
from .span import Count, SpanMessage
from .terms import terms

# port=8080, mypy==0.910, "total_cost': 0.43", line 1475
_VALUE = re.compile(
    r"""(?<![\w.-])([A-Za-z][\w.-]{1,40})['"]?(==|[:=]\s?|\s)['"(]?(\d[\d.,:]{0,20}\d%?)(?![\w.,-]{0,40}\w)"""
)
_FEW = 8
_LABEL = "Also named: "
_LINE = re.compile(rf"^- (?:{_LABEL})?`([^`\n]*)`$", re.MULTILINE)


def is_name_line(line: str) -> bool:
    return bool(_LINE.fullmatch(line))


def short_lines(*lines: str) -> list[str]:
    """Name lines as more of them with few names each, for which there may be room; every name once."""
    names = list(dict.fromkeys(name for line in lines for name in _LINE.findall(line)[0].split(", ")))
    return [name_line(names[at : at + _FEW]) for at in range(0, len(names), _FEW)]


def name_line(names: Sequence[str]) -> str:
    return f"- {_LABEL}`{', '.join(names)}`" if names else ""


def ranked_names(messages: Sequence[SpanMessage], old: Iterable[str]) -> list[str]:
    """Identifiers and URLs, best first: what people and the agent wrote before what tools printed, those in most
    messages first; then those of the name lines in the texts of the previous summary."""
    said: Counter[str] = Counter()
    printed: Counter[str] = Counter()
    for message in messages:
        said.update(_distinct([*message.texts("text"), *map(call_values, message.texts("call"))]))
        printed.update(_distinct(list(message.texts("result"))))
    carried = (name for text in old for line in _LINE.findall(text) for name in line.split(", "))
    ranked = [*said.most_common(), *printed.most_common()]
    return list(dict.fromkeys([*(name for name, _ in ranked), *carried]))


def _distinct(texts: Sequence[str]) -> list[str]:
    names = (term.text for text in texts for term in terms(text) if term.kind in ("identifier", "url"))
    values = (
        f"{name}{sign.rstrip() or ' '}{value}"
        for text in texts
        for name, sign, value in _VALUE.findall(text)
        if sign.strip() or _tells(name)
    )
    return list(dict.fromkeys(chain(names, values)))


def _tells(word: str) -> bool:
    """Whether a word before a number says what it is: `port 8080`, not `in 11`."""
    return len(word) > 2 and word.lower() not in PLAIN


def _figure(name: str) -> str:
    """The number of a pair like `port 8080`; no more of it is shown where the number is."""
    found = _VALUE.fullmatch(name)
    return found[3] if found else ""


def fitting(ranked: Sequence[str], shown: Iterable[str], room: int, count: Count) -> str:
    """The name line with as many as fit in `room` tokens, without those in the `shown` texts."""
    text = "\n".join(shown)
    known = {term.text for term in terms(text)}
    room -= count(name_line(["x"]))
    chosen = []
    for name in ranked:
        if name in known or "`" in name or _figure(name) in known:
            continue
        known.add(_figure(name) or name)
        room -= count(f", {name}")
        if room < 0:
            break
        chosen.append(name)
    return name_line(chosen)
