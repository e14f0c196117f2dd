"""Stored Anthropic messages as the turns the API takes.

Every rule looks at one stored message, or at the turn it stands in, so that reading again gives the same bytes and an
append adds blocks behind those shown before (semantics 1, invariant 6). Two appends move what was shown last: a result
that comes after other blocks of its turn, and a user message after a system message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from compaction_service.engine.formats.anthropic_checks import SERVER_CALLS, THINKING
from compaction_service.engine.formats.anthropic_ids import distinct
from compaction_service.engine.types import JSON

# What the user says before an assistant that speaks first: the API has refused such conversations.
OPENING = {"role": "user", "content": "[The conversation begins with the assistant.]"}


class _Piece(NamedTuple):
    """A stored message and what of its content can be shown."""

    message: JSON
    content: str | list[JSON]
    origin: tuple[int, ...]

    @property
    def role(self) -> str:
        role: str = self.message["role"]
        return role


_Turn = tuple[JSON, tuple[int, ...]]


def arrange(messages: Sequence[JSON], origins: Sequence[tuple[int, ...]]) -> tuple[list[JSON], list[tuple[int, ...]]]:
    """The messages as turns, every call of them with an id of its own.

    A message that needs no change is passed on by reference.
    """
    turns, places = merge(messages, origins)
    return distinct(turns), places


def merge(messages: Sequence[JSON], origins: Sequence[tuple[int, ...]]) -> tuple[list[JSON], list[tuple[int, ...]]]:
    """User and assistant turns that alternate, the user's first; each turn's results before its other blocks."""
    pieces = (
        _Piece(message, content, origin)
        for message, origin in zip(messages, origins, strict=True)
        if (content := shown(message))
    )
    turns: list[_Turn] = []
    for assistant, turn in groupby(pieces, key=lambda piece: piece.role == "assistant"):
        if not assistant:
            turns += _user_turn(list(turn), after=turns[-1][0] if turns else None)
            continue
        if not turns:
            turns.append((OPENING, ()))
        turns.append(_joined(list(turn)))
    return [message for message, _ in turns], [origin for _, origin in turns]


def shown(message: JSON) -> str | list[JSON]:
    """The content without what the API refuses; empty where nothing is left.

    It refuses empty texts, blank ones where no other text of the message says anything, and an assistant message that
    ends with its thinking. Thinking goes as a whole or not at all.
    """
    content: str | list[JSON] = message["content"]
    if isinstance(content, str):
        return "" if _blank(content) else content
    if not any(map(_doubtful, content)) and content and content[-1]["type"] not in THINKING:
        return content  # nearly every message
    speaks = any(block["type"] == "text" and not _blank(block["text"]) for block in content)
    kept = [_result(block) for block in content if _sayable(block, speaks)]
    while kept and kept[-1]["type"] in THINKING:
        kept.pop()
    same = len(kept) == len(content) and all(new is old for new, old in zip(kept, content, strict=True))
    return content if same else kept


def blocks_of(content: str | list[JSON]) -> list[JSON]:
    """The blocks of a content; a string is one block of text, none where it is empty."""
    if not isinstance(content, str):
        return content
    return [{"type": "text", "text": content}] if content else []


def _doubtful(block: JSON) -> bool:
    kind = block["type"]
    return _blank(block["text"]) if kind == "text" else kind == "tool_result" and _result(block) is not block


def _sayable(block: JSON, speaks: bool) -> bool:
    return block["type"] != "text" or (block["text"] != "" if speaks else not _blank(block["text"]))


def _blank(text: str) -> bool:
    return not text or text.isspace()


def _result(block: JSON) -> JSON:
    """A result without empty texts in it. One that has no content at all may not say it is an error."""
    if block["type"] != "tool_result":
        return block
    content = block.get("content")
    if isinstance(content, list):
        speaks = any(part["type"] == "text" and not _blank(part["text"]) for part in content)
        kept = [part for part in content if _sayable(part, speaks)]
        if len(kept) < len(content):
            content, block = kept, {**block, "content": kept or ""}
    if not content and block.get("is_error"):
        return {key: value for key, value in block.items() if key != "is_error"}
    return block


def _user_turn(pieces: Sequence[_Piece], after: JSON) -> Iterator[_Turn]:
    """One user message, and behind it one system message where there were any.

    A system message must follow a user turn or the provider's own tools; elsewhere its text is shown as the user's.
    """
    said = [piece for piece in pieces if piece.role == "user"]
    system = [piece for piece in pieces if piece.role == "system"]
    if said:
        yield _joined(said)
    if system and (said or _ends_with_server_tool(after)):
        yield _joined(system)
    elif system:
        blocks = [block for piece in system for block in blocks_of(piece.content) if block["type"] == "text"]
        if blocks:
            yield {"role": "user", "content": blocks}, _origin(system)


def _ends_with_server_tool(message: JSON) -> bool:
    if message is None:
        return False
    kind = blocks_of(message["content"])[-1]["type"]
    return kind in SERVER_CALLS or kind.endswith("_tool_result")


def _joined(pieces: Sequence[_Piece]) -> _Turn:
    """The pieces as one message of their role, results first. Only what the API takes of a message: role, content."""
    first = pieces[0]
    if len(pieces) > 1:
        content: str | list[JSON] = _results_first([block for piece in pieces for block in blocks_of(piece.content)])
    else:
        content = first.content
        if isinstance(content, list) and len(content) > 1:
            content = _results_first(content)
    if content is first.message["content"] and len(first.message) == 2:  # role and content
        return first.message, first.origin
    return {"role": first.role, "content": content}, _origin(pieces)


def _results_first(blocks: list[JSON]) -> list[JSON]:
    is_result = [block["type"] == "tool_result" for block in blocks]
    if all(is_result[: sum(is_result)]):
        return blocks
    order = (*(i for i, result in enumerate(is_result) if result), *(i for i, r in enumerate(is_result) if not r))
    return [blocks[i] for i in order]


def _origin(pieces: Iterable[_Piece]) -> tuple[int, ...]:
    return tuple(position for piece in pieces for position in piece.origin)
