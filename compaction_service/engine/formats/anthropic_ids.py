"""Ids of calls as Anthropic's API takes them: letters, digits, _ and -, and each of one call only in a request.

Agents that count their calls, or came from another provider, use an id again, or one of other characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from compaction_service.engine.types import JSON

_OTHER: Final = re.compile(r"[^a-zA-Z0-9_-]")


def distinct(turns: Sequence[JSON]) -> list[JSON]:
    """Turns in which each result follows its call in the next one, every call with an id of its own.

    The first call with an id keeps it, so an append changes nothing before it. Turns are passed on by reference where
    nothing changes.
    """
    ids = [
        block["id"]
        for turn in turns
        if turn["role"] == "assistant" and not isinstance(turn["content"], str)
        for block in turn["content"]
        if block["type"] == "tool_use"
    ]
    if len(set(ids)) == len(ids) and not _OTHER.search("".join(ids)):
        return list(turns)  # nearly every context
    taken: set[str] = set()
    names: dict[str, str] = {}  # of calls of the newest assistant turn: as stored -> as shown, where that differs
    shown: list[JSON] = []
    for turn in turns:
        content = turn["content"]
        if isinstance(content, str):
            shown.append(turn)
        elif turn["role"] == "assistant":
            names = {}
            for block in content:
                if block["type"] == "tool_use" and (free := _free(block["id"], taken)) != block["id"]:
                    names[block["id"]] = free
            shown.append(_renamed(turn, "id", names))
        else:
            shown.append(_renamed(turn, "tool_use_id", names))
    return shown


def _free(id_: str, taken: set[str]) -> str:
    """The id, or one made of it that no call before has, which is taken now."""
    if id_ not in taken and not _OTHER.search(id_):
        taken.add(id_)
        return id_
    base = _OTHER.sub("_", id_)
    free, number = base, 1
    while free in taken:
        number += 1
        free = f"{base}_{number}"
    taken.add(free)
    return free


def _renamed(turn: JSON, key: str, names: dict[str, str]) -> JSON:
    if not names:
        return turn
    content = [
        {**block, key: names.get(block[key], block[key])} if block["type"] in ("tool_use", "tool_result") else block
        for block in turn["content"]
    ]
    return {**turn, "content": content}
