"""Message formats of the providers. `get` gives one by the name a conversation has it under."""

from __future__ import annotations

from compaction_service.engine.formats import anthropic, openai
from compaction_service.engine.formats.base import Format

_FORMATS: dict[str, Format] = {"openai": openai, "anthropic": anthropic}
NAMES = tuple(_FORMATS)


def get(name: str) -> Format:
    """The format of this name. KeyError if there is none."""
    return _FORMATS[name]
