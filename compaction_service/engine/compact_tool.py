"""The tool by which a model asks for a compaction itself (semantics 8)."""

from __future__ import annotations

from compaction_service.engine import jsontext
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import JSON

NAME = "compact"
LONGEST_FOCUS = 10_000  # characters; what a model says beyond is cut off
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


def held(fmt: Format, tools: JSON) -> bool:
    """Whether a conversation's tools hold one of this name."""
    return NAME in fmt.tool_names(tools)


def focus_of(fmt: Format, message: JSON) -> str:
    """The focus that a message's calls of the tool ask for; empty where none says one that can be read.

    A model may write anything for arguments: what is no JSON object with a text is no focus. It can be stored: no NUL,
    no lone surrogate. Of several calls the last that says something counts.
    """
    said = (_focus(part.text) for part in fmt.parts(message) if part.kind == "call" and part.name == NAME)
    return next(filter(None, reversed(list(said))), "")


def _focus(arguments: str) -> str:
    try:
        values = jsontext.loads(arguments)
    except ValueError:
        return ""
    text = values.get("focus") if isinstance(values, dict) else None
    if not isinstance(text, str):
        return ""
    return text[:LONGEST_FOCUS].replace("\0", "").encode(errors="replace").decode().strip()
