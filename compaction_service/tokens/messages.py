"""Tokens of system, tools and messages, each counted once (semantics 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, Literal

from compaction_service.tokens import parts, schema
from compaction_service.tokens.count import count_text
from compaction_service.tokens.families import Family, family

Method = Literal["exact", "estimate"]

# Keys of a message that no model reads, and those counted apart.
_NOT_TEXT = {
    *("role", "content", "id", "type", "status", "index", "annotations", "cache_control", "logprobs"),
    *("stop_reason", "stop_sequence", "finish_reason", "usage", "model", "object", "created"),
}


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts raw tokens: of the encoding, before the factor (docs/design.md). What a provider charges by size or per
    message is divided by the factor, so that `ceil(raw x factor)` has it right.

    Takes any JSON and never raises on one; what it does not know is counted by its text. Formats ("openai",
    "anthropic") need no telling apart: every part says by itself what it is, and clients of a proxy mix them.
    """

    encoding: str
    method: Method
    factor: float
    family: Family  # its overhead already divided by the factor

    def text(self, text: str) -> int:
        """Tokens of bare text."""
        return count_text(text, self.encoding)

    def message(self, fmt: str, message: Any) -> int:  # noqa: ARG002
        """Tokens of one message, its overhead included."""
        if not isinstance(message, dict):
            return self.text(parts.leaves(message))
        content = message.get("content")
        tokens = count_text(content, self.encoding) if isinstance(content, str) else self._content(content)
        tokens += self.family.overhead.message
        if len(message) > 2 or "content" not in message:  # more than role and content
            tokens += self._fields(message)
        return tokens

    def system(self, fmt: str, system: Any) -> int:
        """Tokens of the system prompt (text, blocks or a message) and of what any request costs besides.

        So `system(fmt, None)` is not 0: add it once per context.
        """
        cost = self.family.overhead
        if not system:
            return cost.request
        if isinstance(system, dict) and "content" in system:
            return self.message(fmt, system) + cost.request
        return self._content(system) + cost.system + cost.request

    def tools(self, fmt: str, tools: Any) -> int:  # noqa: ARG002
        """Tokens of the tool definitions, 0 without any."""
        if not tools:
            return 0
        cost = self.family.overhead
        tokens = cost.tools
        functions = []
        for tool in tools if isinstance(tools, list) else [tools]:
            function = _function(tool)
            if function is None:
                kind = str(tool.get("type")) if isinstance(tool, dict) else ""
                tokens += self.text(parts.leaves(tool))
                tokens += sum(more for name, more in cost.server_tools.items() if kind.startswith(name))
            elif cost.as_typescript:
                functions.append(function)
            else:
                tokens += self.text(_compact(function))
        return tokens + (self.text(schema.namespace(functions)) if functions else 0)

    def _content(self, value: Any) -> int:
        if isinstance(value, str):
            return count_text(value, self.encoding)
        texts, other = parts.content(value, self.family)
        tokens = ceil(other)
        for text in texts:
            tokens += count_text(text, self.encoding)
        return tokens

    def _fields(self, message: dict[str, Any]) -> int:
        """A message's keys besides role and content."""
        cost = self.family.overhead
        tokens = 0
        for key, value in message.items():
            if key in _NOT_TEXT or not value:
                continue
            if key == "name":
                tokens += 1 + self._name(value)
            elif key == "tool_calls" and isinstance(value, list):
                for call in value:
                    tokens += self._call(call.get("function", call) if isinstance(call, dict) else call) + cost.call
            elif key == "function_call":
                tokens += self._call(value) + cost.call
            elif key == "tool_call_id":
                tokens += cost.result
            else:
                tokens += self.text(parts.leaves(value))
        return tokens

    def _call(self, function: Any) -> int:
        if isinstance(function, dict) and isinstance(arguments := function.get("arguments"), str):
            return self._name(function.get("name")) + count_text(arguments, self.encoding)
        return self.text(parts.leaves(function, opaque=False))

    def _name(self, name: Any) -> int:
        if isinstance(name, str) and len(name) <= 64:  # the longest name a tool may have
            return _count_name(name, self.encoding)
        return self.text(parts.leaves(name))


# The same few names come in every message.
_count_name = lru_cache(maxsize=4096)(count_text)


def _function(tool: Any) -> dict[str, Any] | None:
    """A tool the client runs, of either format, as `{"name", "description"?, "parameters"?}`."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function", tool)
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    if "input_schema" in inner:
        return {"name": inner["name"], "description": inner.get("description"), "parameters": inner["input_schema"]}
    if "parameters" in inner or tool.get("type") == "function" or "type" not in tool:
        return inner
    return None


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return parts.leaves(value, opaque=False)


@lru_cache(maxsize=256)
def counter_for(tokenizer: str, factor: float) -> Counter:
    """The counter of a registry row's `tokenizer` and `factor`. Raises ValueError for an unknown tokenizer.

    Its `method` is "exact" only for OpenAI's models, whose own encoding it is, with a factor of 1.
    """
    found = family(tokenizer)
    method: Method = "exact" if found.exact and factor == 1 else "estimate"
    return Counter(found.encoding, method, factor, found.at(factor))
