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

DEFAULT_SECTIONS = ("Overall Goal", "Next Steps", "Active Files")

_HEADING = re.compile(r"^[ \t>*`-]{0,6}##[ \t]+([^\n`#]{1,100})`?[ \t]*$", re.MULTILINE)
_LENGTH = re.compile(r"([0-9][0-9,]{0,9})[ \t]tokens")
_ABOUT = re.compile(
    r"(?:about|around|roughly|approximately|aim for|target)[^\n.]{0,40}?([0-9][0-9,]{0,9})[ \t]tokens", re.IGNORECASE
)
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|\x00]{4,80}")
_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\sA-Za-z0-9]")
_SCAN = 400_000  # characters of a prompt looked at for names: enough for any test, quick for any size

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
    names: tuple[str, ...]  # identifiers, paths and numbers, each once, in order
    paths: tuple[str, ...]


def tokens(text: str) -> int:
    """About the number of tokens of a text, rather a few too many."""
    return sum(max(1, -(-len(piece) // 8)) for piece in _PIECE.findall(text))


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
    """What the prompt asks for. The system message is looked at first, since data may hold headings too."""
    texts = prompt_texts(body)
    sections = next((found for text in texts if (found := _headings(text))), DEFAULT_SECTIONS)
    length = next((n for text in texts if (n := _asked_length(text))), None)
    words = [word.strip(".:!?*_#-/=~+") for text in texts for word in _WORD.findall(text[-_SCAN:])]
    names = tuple(dict.fromkeys(word for word in words if _telling(word)))
    maximum = body.get("max_completion_tokens") or body.get("max_tokens")
    return Ask(sections, length, maximum, names, tuple(name for name in names if _is_path(name)))


def write(ask: Ask, length: int, language: str = "english") -> str:
    """Markdown with the asked sections, of about `length` tokens."""
    names = cycle(ask.names or ("the plan",))
    numbers = count(1)
    shares = {s: _lines(s, ask, names, numbers, language) for s in ask.sections}
    written: dict[str, list[str]] = {s: [next(lines)] for s, lines in shares.items()}
    spent = sum(tokens(s) + 3 + tokens(lines[0]) for s, lines in written.items())
    open_sections = list(ask.sections)
    while open_sections:
        for section in list(open_sections):
            line = next(shares[section], None)
            if line is None or spent + tokens(line) + 1 > length:
                open_sections.remove(section)
            else:
                spent += tokens(line) + 1
                written[section].append(line)
    return "\n\n".join("\n".join([f"## {section}", *lines]) for section, lines in written.items()) + "\n"


def _lines(section: str, ask: Ask, names: Iterator[str], numbers: Iterator[int], language: str) -> Iterator[str]:
    if "files" in section.lower():
        yield from (f"- {path}" for path in ask.paths[:20] or ["none"])
        return
    checklist = "step" in section.lower() or "todo" in section.lower()
    for sentence in cycle([_STEPS[language]] if checklist else _SENTENCES[language]):
        n = next(numbers)
        mark = ("- [x] " if n % 3 == 0 else "- [ ] ") if checklist else ""
        yield mark + sentence.replace("{n}", str(n)).replace("{name}", next(names))


def _headings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.strip() for match in _HEADING.findall(text[:_SCAN])))


def _asked_length(text: str) -> int | None:
    found = _ABOUT.search(text[:_SCAN]) or _LENGTH.search(text[:_SCAN])
    return int(found.group(1).replace(",", "")) if found else None


def _is_path(word: str) -> bool:
    head, dot, ending = word.rpartition(".")
    return bool(dot) and "/" in head and 1 <= len(ending) <= 5 and ending.isalnum() and "://" not in word


def _telling(word: str) -> bool:
    """Whether a word is a name rather than language: it has a digit, an underscore, a slash or a capital inside."""
    return len(word) >= 4 and (
        any(c.isdigit() or c in "_/" for c in word) or any(c.isupper() for c in word[1:] if word[0].islower())
    )
