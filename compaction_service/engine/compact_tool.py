"""The tool by which a model asks for a compaction itself (semantics 8)."""

from __future__ import annotations

from compaction_service.engine.types import JSON

NAME = "compact"
_DESCRIPTION = (
    "Compact the earlier part of this conversation into a summary. Call it when much of what was said is no longer "
    "needed word for word, for instance after finishing a part of the work. The messages stay stored."
)
_PARAMETERS: JSON = {
    "type": "object",
    "properties": {"focus": {"type": "string", "description": "What the summary should dwell on."}},
    "required": [],
    "additionalProperties": False,
}


def definition(fmt: str) -> JSON:
    """The tool in a provider's format: "openai" or "anthropic"."""
    about = {"name": NAME, "description": _DESCRIPTION}
    if fmt == "anthropic":
        return {**about, "input_schema": _PARAMETERS}
    return {"type": "function", "function": {**about, "parameters": _PARAMETERS}}
