"""Tool definitions as OpenAI's models read them: a TypeScript-like namespace, shorter than the JSON (semantics 3)."""

from __future__ import annotations

from typing import Any

_DEEPEST = 40  # a schema nested deeper is cut there: no real one is, and a hostile one must not exhaust the stack


def namespace(functions: list[dict[str, Any]]) -> str:
    """The text a model is shown for `functions`, each `{"name", "description"?, "parameters"?}`."""
    lines = ["namespace functions {", ""]
    for function in functions:
        lines += _comment(function.get("description"), 0)
        name, parameters = function.get("name") or "", function.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, dict) else None
        if isinstance(properties, dict) and properties:
            lines += [f"type {name} = (_: {{", *_properties(parameters, 0), "}) => any;", ""]
        else:
            lines += [f"type {name} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _properties(schema: Any, depth: int) -> list[str]:
    lines: list[str] = []
    needed = schema.get("required")
    required = {name for name in needed if isinstance(name, str)} if isinstance(needed, list) else set()
    for name, inner in schema["properties"].items():
        if isinstance(inner, dict):
            lines += _comment(inner.get("description"), depth)
        mark = "" if name in required else "?"
        lines.append(f"{' ' * depth}{name}{mark}: {_type(inner, depth)},")
    return lines


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "any"
    choices = _choices(schema, depth)
    if choices is not None:
        return " | ".join(choices)
    kind = schema.get("type")
    if kind == "array":
        return f"{_type(schema.get('items'), depth + 1)}[]"
    if isinstance(schema.get("properties"), dict) and schema["properties"]:
        return "\n".join(["{", *_properties(schema, depth + 2), "}"])
    return "number" if kind == "integer" else kind if isinstance(kind, str) else "any"


def _choices(schema: dict[str, Any], depth: int) -> list[str] | None:
    """The members of a union: of literals, of schemas or of types."""
    if isinstance(schema.get("enum"), list):
        return [f'"{item}"' if isinstance(item, str) else str(item) for item in schema["enum"]]
    for union in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(union), list):
            return [_type(item, depth + 1) for item in schema[union]]
    if isinstance(schema.get("type"), list):
        kinds = dict.fromkeys(kind for kind in schema["type"] if isinstance(kind, str))
        return [
            _type({**schema, "type": kind} if kind in ("array", "object") else {"type": kind}, depth) for kind in kinds
        ]
    return None


def _comment(text: Any, depth: int) -> list[str]:
    return [f"{' ' * depth}// {text}"] if isinstance(text, str) and text else []
