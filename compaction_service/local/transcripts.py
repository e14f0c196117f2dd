"""Reading recorded conversations: JSON Lines, one conversation a line (docs/transcripts.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction_service.local.stack import BASE_DIR

JSON = dict[str, Any]

VARIABLE = "TRANSCRIPTS"  # names a folder of your own
BESIDE = BASE_DIR.parent / "shared" / "data"  # a larger collection, where a machine has one
SHIPPED = BASE_DIR / "tests" / "data"
FORMATS = ("openai", "anthropic")
IDS_NAMED = 5  # in an error message


class TranscriptError(Exception):
    """A transcript that cannot be used; the message names the file and the line."""


@dataclass(frozen=True)
class Transcript:
    """One conversation as recorded. `model` is None where the record does not say."""

    id: str
    format: str
    model: str | None
    system: Any
    tools: list[JSON] | None
    messages: list[JSON]


def folder(environ: Mapping[str, str]) -> Path:
    """Where transcripts are looked for by name: TRANSCRIPTS, else the collection beside the checkout, else the shipped.

    Raises TranscriptError where TRANSCRIPTS is no folder.
    """
    if chosen := environ.get(VARIABLE):
        if not Path(chosen).is_dir():
            raise TranscriptError(f"{VARIABLE} names {chosen}, which is no folder.")
        return Path(chosen)
    return BESIDE if BESIDE.is_dir() else SHIPPED


def locate(name: str, environ: Mapping[str, str]) -> Path:
    """The file called `name`: a path, or the name of a file in the folder or among the shipped, `.jsonl` optional."""
    tried = [Path(name)]
    for place in (folder(environ), SHIPPED):
        tried += [place / name, place / f"{name}.jsonl"]
    for path in tried:
        if path.is_file():
            return path
    raise TranscriptError(f"No transcript {name}: looked for {', '.join(map(str, dict.fromkeys(tried)))}.")


def read(path: Path) -> Iterator[Transcript]:
    """The conversations of a file, in order, one line in memory at a time.

    Lines end at LF only: texts may hold U+2028 and other line ends of Unicode. Raises TranscriptError.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse(line, f"{path}:{number}")
    except OSError as exc:
        raise TranscriptError(f"{path} cannot be read: {exc.strerror}.") from exc


def find(path: Path, wanted: str | None = None) -> Transcript:
    """The conversation `wanted` of a file, or its first. Raises TranscriptError."""
    seen: list[str] = []
    for transcript in read(path):
        if wanted in (None, transcript.id):
            return transcript
        seen.append(transcript.id)
    if not seen:
        raise TranscriptError(f"{path} holds no conversation.")
    more = f" and {len(seen) - IDS_NAMED} more" if len(seen) > IDS_NAMED else ""
    raise TranscriptError(f"{path} has no conversation {wanted}; it has {', '.join(seen[:IDS_NAMED])}{more}.")


def _parse(line: bytes, place: str) -> Transcript:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise TranscriptError(f"{place}: not a line of JSON ({exc}).") from exc
    if not isinstance(given, dict):
        raise TranscriptError(f"{place}: must be an object.")
    identity, model, tools = given.get("id"), given.get("model"), given.get("tools")
    if not isinstance(identity, str) or not identity:
        raise TranscriptError(f"{place}: `id` must be a text.")
    if given.get("format") not in FORMATS:
        raise TranscriptError(f"{place}: `format` must be one of {', '.join(FORMATS)}.")
    if not (model is None or isinstance(model, str)):
        raise TranscriptError(f"{place}: `model` must be a text or null.")
    if not (tools is None or isinstance(tools, list)):
        raise TranscriptError(f"{place}: `tools` must be a list or null.")
    return Transcript(
        identity, given["format"], model, given.get("system"), tools, _messages(given.get("messages"), place)
    )


def _messages(given: Any, place: str) -> list[JSON]:
    if not isinstance(given, list) or not given:
        raise TranscriptError(f"{place}: `messages` must be a list with messages in it.")
    for index, message in enumerate(given):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise TranscriptError(f"{place}: messages[{index}] must be an object with a `role`.")
    return given
