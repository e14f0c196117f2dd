"""Thinking in Anthropic messages: shown as it came to the byte, or left out whole.

From Claude Fable 5.1 on a signature also binds what stood before the thinking: system, tools and messages. Where that
changed, the API refuses the request. Older models take such thinking, and some ask for that of the last calls.
"""

from __future__ import annotations

import re
from typing import Final

from compaction_service.engine.formats.anthropic_checks import THINKING
from compaction_service.engine.types import JSON

# The models that look at the thinking alone. The list is closed: whatever comes after them looks at its prefix too.
_UNBOUND: Final = re.compile(
    r"claude[-.](?:v?\d|instant|mythos-preview"
    r"|(?:opus|sonnet|haiku)[-.][34]"
    r"|(?:opus|sonnet|fable|mythos)[-.]5(?![-.]\d{1,2}(?!\d)))"
)  # fmt: skip


def binds_thinking(model: str) -> bool:
    """Whether this model refuses thinking of its own after what stood before it has changed.

    Models that are not called Claude sign nothing.
    """
    name = model.lower()
    return "claude" in name and not _UNBOUND.search(name)


def without_thinking(message: JSON) -> JSON:
    """The message without it; the same one where it has none."""
    content = message["content"]
    if message["role"] != "assistant" or isinstance(content, str):
        return message
    kept = [block for block in content if block["type"] not in THINKING]
    return message if len(kept) == len(content) else {**message, "content": kept}
