"""The files a span works on, found mechanically (semantics 7, Active Files)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from .sections import Section, meaning, section
from .span import Count, SpanMessage
from .terms import backticked, paths
from .text import clean

_PATH_KEYS = frozenset(("path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths", "notebook"))
_FILE_NAME = (("file", "name"), ("file", "names"))
_KEY_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_MAX_KEY = 60
_MAX_PATH = 300  # characters
_MAX_VALUE = 600  # characters of an argument that is searched for paths; a longer one is a file's content
_MAX_ARGUMENTS = 1_000_000  # characters that are parsed
_ENDING = re.compile(r"\w\.[A-Za-z][A-Za-z0-9]{0,7}$")
_NO_FILE = frozenset(("none", "n/a", "-", "—"))


def argument_files(messages: Iterable[SpanMessage]) -> list[str]:
    """Distinct files in the arguments of the span's tool calls, in order of first use: values under keys like `path`
    or `file_name`, and path-looking words of other short values."""
    out: dict[str, None] = {}
    for message in messages:
        for text in message.texts("call"):
            out.update(dict.fromkeys(_call_files(clean(text))))
    return list(out)


def call_values(arguments: str) -> str:
    """The string values of a call's arguments on one line; arguments that are no JSON as they are."""
    try:
        parsed = orjson.loads(clean(arguments)[:_MAX_ARGUMENTS])
    except ValueError:
        return " ".join(arguments[:_MAX_ARGUMENTS].split())
    return " ".join(" ".join(value for _, value in _leaves(parsed)).split())


def _call_files(arguments: str) -> Iterator[str]:
    try:
        parsed = orjson.loads(arguments[:_MAX_ARGUMENTS])
    except ValueError:
        yield from paths(arguments[:_MAX_VALUE])
        return
    for key, value in _leaves(parsed):
        if _names_files(key) and 0 < len(value) <= _MAX_PATH and "\n" not in value:
            yield value.strip()
        elif len(value) <= _MAX_VALUE:
            yield from paths(value)


def _names_files(key: str) -> bool:
    """`path`, `file_name`, `targetFile`, `notebook-path`, but not `profile`."""
    words = [word.lower() for word in _KEY_WORD.findall(key[-_MAX_KEY:])]
    return bool(words) and (words[-1] in _PATH_KEYS or tuple(words[-2:]) in _FILE_NAME)


def _leaves(parsed: Any) -> Iterator[tuple[str, str]]:
    """Every string with the key it stands under, in order; no recursion, arguments may nest deeply."""
    stack: list[tuple[str, Any]] = [("", parsed)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            stack += [(str(k), v) for k, v in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(key, v) for v in reversed(value)]


def is_file(path: str) -> bool:
    """Whether the name alone says so: an ending, a dot before it, or a capital, as in Makefile. Others may be
    directories and programs."""
    last = path.replace("\\", "/").rpartition("/")[2]
    return bool(last) and (last[0] == "." or last[0].isupper() or bool(_ENDING.search(last)))


def used_files(messages: Iterable[SpanMessage], listed: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """(files, other paths) of the span and of a list from before, distinct: those of call arguments first; then the
    list's; then those that only texts mention, in most messages first. Of the others nobody knows what they are, or
    they are directories."""
    messages = list(messages)
    counted: Counter[str] = Counter()
    for message in messages:
        counted.update(list(dict.fromkeys(path for text in message.texts("text", "result") for path in paths(text))))
    called, mentioned = argument_files(messages), [path for path, _ in counted.most_common()]
    files = _without_directories([*called, *listed, *filter(is_file, mentioned)], mentioned)
    known = set(files)
    return files, [path for path in dict.fromkeys([*called, *mentioned]) if path not in known]


def _without_directories(names: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """The distinct names; not those of directories that one of them, or of the `known` ones, is in."""
    directories = {
        name[:at] for name in (*names, *known) for at, sign in enumerate(name) if sign == "/" and at < len(name) - 1
    }
    return [name for name in dict.fromkeys(names) if name[-1:] != "/" and name not in directories]


def named_files(section_text: str) -> list[str]:
    """The files an Active Files section names: one a line, or the paths of a line of prose."""
    out: dict[str, None] = {}
    for line in section_text.splitlines():
        text = (
            line.strip().lstrip("-*+•0123456789.) ").strip() if line.strip()[:1] in "-*+•0123456789" else line.strip()
        )
        found = [*backticked(text), *paths(text)] or [text.strip("`\"' ")]
        out.update((name, None) for name in found if 0 < len(name) <= _MAX_PATH and name.lower() not in _NO_FILE)
    return list(out)


def active_files(
    messages: Sequence[SpanMessage], section_text: str, known_text: str = ""
) -> tuple[list[str], list[str]]:
    """(kept, invented): files the section names that occur in the span or in `known_text` (what older positions of the
    node are known by: the previous summary), then those of the span's call arguments; and those that occur nowhere."""
    named = named_files(section_text)
    texts = [known_text, *(part.text for m in messages for part in m.parts if part.kind != "thinking")]
    real = [name for name in named if any(_occurs(name, text) for text in texts)]
    called = _without_directories([*argument_files(messages), *real])
    kept = dict.fromkeys([*real, *called])
    return list(kept), [name for name in named if name not in kept]


def _occurs(name: str, text: str) -> bool:
    """As a whole name, not inside a longer one; in JSON arguments backslashes are doubled."""
    for form in {name, name.replace("\\", "\\\\")}:
        at = text.find(form)
        while at >= 0:
            after = text[at + len(form) : at + len(form) + 1]
            before = text[at - 1 : at]
            if not (before.isalnum() or before in ("_", "-")) and not (after.isalnum() or after in ("_", "-")):
                return True
            at = text.find(form, at + len(form))
    return False


def with_active_files(
    sections: Sequence[Section],
    messages: Sequence[SpanMessage],
    known_text: str = "",
    *,
    room: int | None = None,
    count: Count = len,
) -> tuple[list[Section], list[str]]:
    """The sections with each Active Files section rewritten as one `- path` per line, and the invented names dropped.

    At most `room` tokens of paths, where given, the last ones left out. Sections about other things stay as they are.
    The caller checks the summary's bound afterwards (`bound.cut`)."""
    out: list[Section] = []
    dropped: list[str] = []
    for one in sections:
        if meaning(one["heading"]) != "files":
            out.append(one)
            continue
        kept, invented = active_files(messages, one["text"], known_text)
        out.append(section(one["heading"], file_list(kept, room, count)))
        dropped += invented
    return out, dropped


def file_list(names: Iterable[str], room: int | None, count: Count) -> str:
    """One `- path` per line, as many as have room."""
    lines = []
    for name in names:
        line = f"- {name}"
        if room is not None and (room := room - count(line) - 1) < 0:
            break
        lines.append(line)
    return "\n".join(lines)
