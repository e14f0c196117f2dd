"""The line of exact names at the end of an extractive summary's facts: identifiers nothing else in it shows.

One code span, "- `getUser, ERR_42, https://...`", so that the next round recognises it and carries it on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from .files import call_values
from .span import Count, SpanMessage
from .terms import terms

_LINE = re.compile(r"^- `([^`\n]*)`$", re.MULTILINE)


def is_name_line(line: str) -> bool:
    return bool(_LINE.fullmatch(line))


def name_line(names: Sequence[str]) -> str:
    return f"- `{', '.join(names)}`" if names else ""


def ranked_names(messages: Sequence[SpanMessage], old: Iterable[str]) -> list[str]:
    """Identifiers and URLs, best first: what people and the agent wrote before what tools printed, those in most
    messages first; then those of the name lines in the texts of the previous summary."""
    said: Counter[str] = Counter()
    printed: Counter[str] = Counter()
    for message in messages:
        said.update(_distinct([*message.texts("text"), *map(call_values, message.texts("call"))]))
        printed.update(_distinct(message.texts("result")))
    carried = (name for text in old for line in _LINE.findall(text) for name in line.split(", "))
    ranked = [*said.most_common(), *printed.most_common()]
    return list(dict.fromkeys([*(name for name, _ in ranked), *carried]))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(t.text for text in texts for t in terms(text) if t.kind in ("identifier", "url")))


def fitting(ranked: Sequence[str], shown: Iterable[str], room: int, count: Count) -> str:
    """The name line with as many as fit in `room` tokens, without those in the `shown` texts."""
    known = {term.text for text in shown for term in terms(text)}
    room -= count(name_line(["x"]))
    chosen = []
    for name in ranked:
        if name in known or "`" in name:
            continue
        room -= count(f", {name}")
        if room < 0:
            break
        chosen.append(name)
    return name_line(chosen)
