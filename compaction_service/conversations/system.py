"""The parts of a context that are not messages: system and tools, stored as they came and counted once."""

from __future__ import annotations

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms
from compaction_service.engine import jsontext
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import JSON


def system_set(conversation: Conversation, terms: Terms, fmt: Format, system: JSON) -> None:
    """Store and count `system`; null takes it away. What any request costs is counted with it."""
    conversation.system = None if system is None else jsontext.dumps(system)
    conversation.system_tokens = terms.counter.system(fmt.name, system)
    _fixed_chars(conversation)


def tools_set(conversation: Conversation, terms: Terms, fmt: Format, tools: JSON) -> None:
    """Store and count `tools`; null takes them away."""
    conversation.tools = None if tools is None else jsontext.dumps(tools)
    conversation.tools_tokens = 0 if tools is None else terms.counter.tools(fmt.name, tools)
    _fixed_chars(conversation)


def _fixed_chars(conversation: Conversation) -> None:
    texts = (conversation.system, conversation.tools)
    conversation.fixed_chars = sum(jsontext.chars(jsontext.loads(text)) for text in texts if text is not None)
