"""The parts of a context that are not messages: system and tools, stored as they came and counted once."""

from __future__ import annotations

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms
from compaction_service.engine import compact_tool, jsontext
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import JSON


def system_set(conversation: Conversation, terms: Terms, fmt: Format, system: JSON) -> None:
    """Store and count `system`; null takes it away. What any request costs is counted with it."""
    conversation.system = None if system is None else jsontext.dumps(system)
    conversation.system_tokens = terms.counter.system(fmt.name, system)
    _fixed_chars(conversation, fmt)


def tools_set(conversation: Conversation, terms: Terms, fmt: Format, tools: JSON) -> None:
    """Store and count `tools`; null takes them away."""
    conversation.tools = None if tools is None else jsontext.dumps(tools)
    conversation.tools_tokens = 0 if tools is None else terms.counter.tools(fmt.name, tools)
    conversation.compact_tool = compact_tool.held(fmt, tools)
    _fixed_chars(conversation, fmt)


def system_and_tools(conversation: Conversation) -> tuple[JSON, JSON]:
    """Both as the client gave them; None where there is none."""
    system, tools = conversation.system, conversation.tools
    return (
        None if system is None else jsontext.loads(system),
        None if tools is None else jsontext.loads(tools),
    )


def _fixed_chars(conversation: Conversation, fmt: Format) -> None:
    """As the context shows them: where the format makes messages of the system, those are measured."""
    system, tools = system_and_tools(conversation)
    shown = [] if system is None else fmt.system_messages(system) or [system]
    conversation.fixed_chars = sum(map(jsontext.chars, shown)) + (0 if tools is None else jsontext.chars(tools))
