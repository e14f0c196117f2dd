"""Which registry name a given model name means: providers' prefixes, dates, aliases and case (pure).

`key` brings the spellings of one model to one string, which the registry stores and indexes; `best` chooses among the
names that share it; `nearest` helps who misspelt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MAX_NAME = 200

# Bedrock's dotted prefixes: an optional region, and the model's maker.
_DOTTED = re.compile(
    r"(?:(?:us|eu|ap|apac|au|jp|ca|global|us-gov)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|twelvelabs"
    r"|writer|zai)\."
)
# Endings that name a variant or a version of the same model, one by one from the right.
_ENDING = re.compile(
    r"(?:[-@](?:20\d\d-\d\d-\d\d|20\d{6}|\d\d-20\d\d|(?:0[1-9]|1[0-2])-?[0-3]\d|2[3-9](?:0[1-9]|1[0-2])|latest|default)"
    r"|-v\d:\d+(?::\w+)?|:(?:beta|free|nitro|floor|exacto|extended|thinking|online|latest))$"
)
_DATE = re.compile(r"[-@](20\d\d-\d\d-\d\d|20\d{6}|\d\d-20\d\d|\d{4}|\d\d-\d\d)(?=$|-v\d:|:)")
_WORD = re.compile(r"[a-z]+|\d+")


class Candidate(NamedTuple):
    """A registry row as the look-up sees it."""

    name: str
    provider: str
    has_window: bool


def key(name: str) -> str:
    """The string that all spellings of one model share."""
    tail = name[:MAX_NAME].strip().lower().rpartition("/")[2]
    tail = _DOTTED.sub("", tail, count=1) if _DOTTED.match(tail) else tail
    tail = tail.removeprefix("databricks-")
    if tail.startswith("ft:"):  # a fine-tune is ft:<base>:<organisation>:<suffix>:<id>
        tail = "ft:" + tail.split(":")[1]
    while ending := _ENDING.search(tail):
        tail = tail[: ending.start()]
    tail = re.sub(r"[._\s]+", "-", tail)
    return re.sub(r"gpt-35(?!\d)", "gpt-3-5", tail)[:MAX_NAME]


def best(name: str, candidates: Iterable[Candidate]) -> Candidate | None:
    """The row that `name` means, of rows with its key; None without any."""
    return min(candidates, key=lambda candidate: _rank(name.strip(), candidate), default=None)


def _rank(name: str, candidate: Candidate) -> tuple[object, ...]:
    """Smaller is nearer: the name itself, its case, its provider, the plainest address, its last part, its date."""
    asked, listed = name.lower(), candidate.name.lower()
    *route, tail = asked.split("/")
    vendors = [number for number, vendor in enumerate(route) if _sells(vendor, candidate)]
    date, listed_date = _digits(asked), _digits(listed)
    return (
        candidate.name != name,
        listed != asked,
        not candidate.has_window,
        vendors[0] if vendors else len(route),
        listed.count("/"),
        tail != listed.rpartition("/")[2],
        _age(date, listed_date),
        len(listed),
        listed,
    )


def _age(date: str, listed: str) -> int:
    """A dated name means its date, else the undated row; an undated one the undated row, else the newest."""
    if date:
        return 0 if date == listed else 2 if listed else 1
    return -int(listed or 99_999_999)


def _sells(vendor: str, candidate: Candidate) -> bool:
    """Whether a part of a name, such as `bedrock`, is the candidate's provider (`bedrock_converse`)."""
    return candidate.provider.lower().startswith(vendor) or candidate.name.lower().startswith(f"{vendor}/")


def _digits(name: str) -> str:
    found = _DATE.search(name)
    return re.sub(r"\D", "", found[1]) if found else ""


def nearest(name: str, names: Sequence[str], most: int = 5) -> list[str]:
    """The names most like `name`, best first: those that share most words and numbers, then most letters."""
    asked = name[:MAX_NAME].lower()
    words = set(_WORD.findall(asked))
    shared = {
        listed: len(words & set(_WORD.findall(listed.lower()))) / (1 + 0.1 * listed.count("/")) for listed in names
    }
    likely = sorted((listed for listed in names if shared[listed]), key=lambda listed: (-shared[listed], len(listed)))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(asked)  # the side it prepares once

    def likeness(listed: str) -> float:
        matcher.set_seq1(listed.lower())
        return matcher.ratio()

    if not likely:  # no word in common: a typing mistake inside a word
        likely = sorted(names, key=lambda listed: abs(len(listed) - len(asked)))
    scored = ((likeness(listed), listed) for listed in likely[:200])
    return [listed for score, listed in sorted(scored, key=lambda one: (-one[0], one[1]))[:most] if score >= 0.5]
