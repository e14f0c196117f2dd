"""A model that does what it is asked, without a model.

It reads the prompt, writes the asked sections at about the asked length, and keeps names, paths and numbers it read.
The same prompt gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any

_HEADING = re.compile(r"^[ \t>*`-]{0,6}##[ \t]+([^\n`#]{1,100})`?[ \t]*$", re.MULTILINE)
_LENGTH = re.compile(r"([0-9][0-9,]{0,9})[ \t]tokens")
_ABOUT = re.compile(
    r"(?:about|around|roughly|approximately|aim at|aim for|target)[^\n.]{0,40}?([0-9][0-9,]{0,9})[ \t]tokens",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![<\w/])[^\s\"'`<>()\[\]{},;|\\\x00]{4,80}")  # not the name of a <mark>
_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\sA-Za-z0-9]")
# Characters at either end of a text that are looked at; the rest is taken to be alike. A server that shares a machine
# with what it measures has to be quick.
_LOOK = 20_000

# A prompt that asks for notes shows their form; a sentence that says one of these is worth one.
_NOTE_FORM = "- [decision !"
_NOTE_WORDS = (
    ("decision", ("decided", "we agreed")),
    ("preference", ("prefer", "always use")),
    ("correction", ("no longer", "correction:")),
    ("commitment", ("promise",)),
    ("open question", ("open question", "not sure whether")),
    ("fact", ("my name is",)),
)
_MESSAGE = re.compile(r"^<(\d+) \w+[^<>]*> (.*?)(?=\n<(?:\d+ \w|time )|\Z)", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"</?[^<>]{1,80}>")
_KNOWN = re.compile(r"^(\d+)\. \[.*?\] (.*)$", re.MULTILINE)
_LONG_WORD = re.compile(r"\w{5,40}")

_SENTENCES = {
    "english": (
        "In step {n} the work moved on to {name}, and the outcome was noted as settled.",
        "A decision about {name} was taken in step {n} and has not changed since.",
        "The user cares about {name}; keep it exactly as it is written here ({n}).",
        "After a look at {name} an open question remained, number {n} on the list.",
        "Nothing else depends on {name}, which was checked once more in step {n}.",
    ),
    "german": (
        "In Schritt {n} ging die Arbeit weiter mit {name}, und das Ergebnis steht fest.",
        "Eine Entscheidung zu {name} fiel in Schritt {n} und gilt seitdem unverändert.",
        "Dem Nutzer ist {name} wichtig; bitte genau so beibehalten wie hier ({n}).",
    ),
}
_STEPS = {"english": "Look at {name} again (item {n}).", "german": "Noch einmal {name} ansehen (Punkt {n})."}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a prompt asks for, and what is in it."""

    sections: tuple[str, ...]
    length: int | None  # tokens
    max_tokens: int | None
    facts: tuple[str, ...]  # to be kept word for word
    names: tuple[str, ...]  # identifiers, paths and numbers, each once, in order
    paths: tuple[str, ...]


def tokens(text: str) -> int:
    """About the number of tokens of a text, rather a few too many."""
    seen = text[:_LOOK]
    count = sum(max(1, -(-len(piece) // 8)) for piece in _PIECE.findall(seen))
    return count * len(text) // len(seen) if len(text) > _LOOK else count


def prompt_texts(body: dict[str, Any]) -> list[str]:
    """The texts of a request's messages."""
    texts = []
    for message in body.get("messages") or []:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts.append("\n".join(str(part.get("text") or "") for part in parts))
    return texts


def prompt_tokens(body: dict[str, Any]) -> int:
    """Tokens of a request, with a chat's overhead."""
    return 3 + sum(4 + tokens(text) for text in prompt_texts(body))


def read(body: dict[str, Any]) -> Ask:
    """What the prompt asks for. Instructions stand outside of <marked> data, and in the system message first."""
    texts = [_ends(text) for text in prompt_texts(body)]
    outside = [_outside_of_data(text) for text in texts]
    words = [word.strip(".:!?*_#-/=~+") for text in texts[-1:] for word in _WORD.findall(text)]
    names = tuple(dict.fromkeys(word for word in words if _telling(word)))
    return Ask(
        sections=next((found for text in outside if (found := _headings(text))), ()),
        length=next((n for text in outside if (n := _asked_length(text))), None),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        facts=tuple(line.removeprefix("- ") for text in texts for line in _marked("preserve", text).splitlines()),
        names=names,
        paths=tuple(name for name in names if _is_path(name)),
    )


def notes(body: dict[str, Any]) -> str | None:
    """The notes of the transcript, if the prompt asks for notes: sentences that say outright what they are.

    Whoever says them, tools too. A correction replaces the known note that shares most words with it.
    """
    texts = prompt_texts(body)
    if not texts or _NOTE_FORM not in texts[0]:
        return None
    known = [
        (number, set(_LONG_WORD.findall(text.lower()))) for number, text in _KNOWN.findall(_marked_in("notes", texts))
    ]
    lines = []
    for position, text in _MESSAGE.findall(_marked_in("transcript", texts)):
        for sentence in re.split(r"(?<=[.!?])\s+|\n", _MARK.sub("", text)):
            kind = next((kind for kind, cues in _NOTE_WORDS if any(cue in sentence.lower() for cue in cues)), None)
            if kind is None:
                continue
            said = set(_LONG_WORD.findall(sentence.lower()))
            old = max(known, key=lambda one: len(one[1] & said), default=None) if kind == "correction" else None
            mark = f" >{old[0]}" if old and old[1] & said else ""
            lines.append(f"- [{kind} !{5 if kind in ('decision', 'correction') else 3} @{position}{mark}] {sentence}")
    return "\n".join(dict.fromkeys(lines)) or "none"


def write(ask: Ask, length: int, language: str = "english") -> str:
    """Markdown with the asked sections, of about `length` tokens; one without a heading where none are asked for."""
    names, numbers = cycle(ask.names or ("the plan",)), count(1)
    headings = [f"## {section}" for section in ask.sections] or [""]
    sources = [_lines(heading, ask, names, numbers, language) for heading in headings]
    written = [[heading] if heading else [] for heading in headings]
    written[0] += ask.facts
    spent = sum(tokens(line) + 1 for lines in written for line in lines)
    growing = list(range(len(headings)))
    while growing:
        for i in list(growing):
            line = next(sources[i], None)
            if line is None or (spent + tokens(line) > length and len(written[i]) > 1):
                growing.remove(i)
            else:
                spent += tokens(line) + 1
                written[i].append(line)
    return "\n\n".join("\n".join(lines) for lines in written) + "\n"


def _lines(heading: str, ask: Ask, names: Iterator[str], numbers: Iterator[int], language: str) -> Iterator[str]:
    if "files" in heading.lower():
        yield from (f"- {path}" for path in ask.paths[:20] or ["none"])
        return
    checklist = "step" in heading.lower() or "todo" in heading.lower()
    for sentence in cycle([_STEPS[language]] if checklist else _SENTENCES[language]):
        n = next(numbers)
        mark = ("- [x] " if n % 3 == 0 else "- [ ] ") if checklist else ""
        yield mark + sentence.replace("{n}", str(n)).replace("{name}", next(names))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _LOOK else f"{text[:_LOOK]}\n{text[-_LOOK:]}"


def _outside_of_data(text: str) -> str:
    """What comes before the first line that opens a <mark> and after the last that closes one."""
    start, end = f"\n{text}".find("\n<"), text.rfind("\n</")
    return text if start < 0 else text[: max(0, start - 1)] + "\n" + (text[end + 1 :] if end >= 0 else "")


def _marked_in(tag: str, texts: list[str]) -> str:
    return "\n".join(_marked(tag, f"\n{text}") for text in texts[1:])


def _marked(tag: str, text: str) -> str:
    _, found, rest = text.partition(f"\n<{tag}>\n")
    return rest.partition(f"\n</{tag}>")[0] if found else ""


def _headings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.strip() for match in _HEADING.findall(text)))


def _asked_length(text: str) -> int | None:
    found = _ABOUT.search(text) or _LENGTH.search(text)
    return int(found.group(1).replace(",", "")) if found else None


def _is_path(word: str) -> bool:
    head, dot, ending = word.rpartition(".")
    return bool(dot) and "/" in head and 1 <= len(ending) <= 5 and ending.isalnum() and "://" not in word


def _telling(word: str) -> bool:
    """Whether a word is a name rather than language: it has a digit, an underscore, a slash or a capital inside."""
    return len(word) >= 4 and (
        any(c.isdigit() or c in "_/" for c in word) or any(c.isupper() for c in word[1:] if word[0].islower())
    )
