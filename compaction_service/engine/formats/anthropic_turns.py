"""Stored Anthropic messages as the turns the API takes.

Every rule looks at one stored message, or at the turn it stands in, so that reading again gives the same bytes and an
append adds blocks behind those shown before (semantics 1, invariant 6). Two appends move what was shown last: a result
that comes after other blocks of its turn, and a user message after a system message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compaction_service.engine.formats.anthropic_checks import SERVER_CALLS, THINKING
from compaction_service.engine.formats.anthropic_ids import distinct
from compaction_service.engine.formats.anthropic_marks import newest
from compaction_service.engine.types import JSON

# What the user says before an assistant that speaks first: the API has refused such conversations.
OPENING = {"role": "user", "content": "[The conversation begins with the assistant.]"}


# A stored message, what of its content can be shown, and its position.
_Piece = tuple[JSON, str | list[JSON], tuple[int, ...]]
_Turn = tuple[JSON, tuple[int, ...]]


def arrange(
    messages: Sequence[JSON], origins: Sequence[tuple[int, ...]], beside: Sequence[JSON] = ()
) -> tuple[list[JSON], list[tuple[int, ...]]]:
    """The messages as turns, every call of them with an id of its own, with no more cache marks than the API takes.

    A message that needs no change is passed on by reference.
    """
    turns, places = merge(messages, origins)
    return newest(distinct(turns), beside), places


def merge(messages: Sequence[JSON], origins: Sequence[tuple[int, ...]]) -> tuple[list[JSON], list[tuple[int, ...]]]:
    """User and assistant turns that alternate, the user's first; each turn's results before its other blocks."""
    turns: list[_Turn] = []
    run: list[_Piece] = []  # what stands together: of the assistant, or of everybody else
    speaker = False
    for message, origin in zip(messages, origins, strict=True):
        if content := shown(message):
            assistant = message["role"] == "assistant"
            if run and assistant is not speaker:
                turns += _turns(run, turns)
                run = []
            speaker = assistant
            run.append((message, content, origin))
    if run:
        turns += _turns(run, turns)
    return [message for message, _ in turns], [origin for _, origin in turns]


def shown(message: JSON) -> str | list[JSON]:
    """The content without what the API refuses; empty where nothing is left.

    It refuses empty texts, blank ones where no other text of the message says anything, and an assistant message that
    ends with its thinking. Thinking goes as a whole or not at all.
    """
    content: str | list[JSON] = message["content"]
    if isinstance(content, str):
        return "" if _blank(content) else content
    if _showable(content):
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


def _showable(content: list[JSON]) -> bool:
    """Whether nothing of it need be looked at again. One loop without calls: this runs for every message."""
    kind = THINKING[0]  # of nothing there is nothing to show
    for block in content:
        kind = block["type"]
        if kind == "text":
            text = block["text"]
            if not text or text.isspace():
                return False
        elif kind == "tool_result":
            inner = block.get("content")
            if not inner:
                if block.get("is_error"):
                    return False
            elif not isinstance(inner, str) and any(part["type"] == "text" and _blank(part["text"]) for part in inner):
                return False
    return kind not in THINKING


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


def _turns(run: Sequence[_Piece], before: Sequence[_Turn]) -> Sequence[_Turn]:
    """What stands together as the turns it makes, behind those before."""
    role = run[0][0]["role"]
    if role == "assistant":
        return [_joined(run)] if before else [(OPENING, ()), _joined(run)]
    if role == "user" and len(run) == 1:
        return [_joined(run)]
    return [*_user_turn(run, after=before[-1][0] if before else None)]


def _user_turn(run: Sequence[_Piece], after: JSON) -> Iterator[_Turn]:
    """One user message, and behind it one system message where there were any.

    A system message must follow a user turn or the provider's own tools; elsewhere its text is shown as the user's.
    """
    said = [piece for piece in run if piece[0]["role"] == "user"]
    system = [piece for piece in run if piece[0]["role"] == "system"]
    if said:
        yield _joined(said)
    if system and (said or _ends_with_server_tool(after)):
        yield _joined(system)
    elif system:
        blocks = [block for _, content, _ in system for block in blocks_of(content) if block["type"] == "text"]
        if blocks:
            yield {"role": "user", "content": blocks}, _origin(system)


def _ends_with_server_tool(message: JSON) -> bool:
    if message is None:
        return False
    kind = blocks_of(message["content"])[-1]["type"]
    return kind in SERVER_CALLS or kind.endswith("_tool_result")


def _joined(pieces: Sequence[_Piece]) -> _Turn:
    """The pieces as one message of their role, results first. Only what the API takes of a message: role, content."""
    first, content, origin = pieces[0]
    if len(pieces) > 1:
        content = _results_first([block for _, part, _ in pieces for block in blocks_of(part)])
    elif len(content) > 1 and not isinstance(content, str):
        content = _results_first(content)
    if content is first["content"] and len(first) == 2:  # role and content
        return first, origin
    return {"role": first["role"], "content": content}, _origin(pieces)


def _results_first(blocks: list[JSON]) -> list[JSON]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    if not results or blocks[: len(results)] == results:
        return blocks
    return [*results, *(block for block in blocks if block["type"] != "tool_result")]


def _origin(pieces: Iterable[_Piece]) -> tuple[int, ...]:
    return tuple(position for _, _, origin in pieces for position in origin)
