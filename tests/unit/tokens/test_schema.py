"""Tools as OpenAI's models read them."""

from __future__ import annotations

from typing import Any

from compaction_service.tokens.schema import namespace


def test_namespace__typical_functions__is_the_typescript_like_form() -> None:
    weather = {
        "name": "weather",
        "description": "Weather of a place",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City"},
                "unit": {"type": "string", "enum": ["c", "f"]},
                "days": {"type": ["integer", "null"]},
                "near": {"type": "object", "properties": {"km": {"type": "number"}}, "required": ["km"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["place"],
        },
    }
    assert namespace([weather, {"name": "now", "parameters": {"type": "object", "properties": {}}}]) == (
        "namespace functions {\n\n// Weather of a place\ntype weather = (_: {\n// City\nplace: string,\n"
        'unit?: "c" | "f",\ndays?: number | null,\nnear?: {\n  km: number,\n},\ntags?: string[],\n}) => any;\n\n'
        "type now = () => any;\n\n} // namespace functions"
    )


def test_namespace__schema_nested_a_thousand_deep__is_cut() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        schema = {"type": ["object", "null"], "properties": {"a": schema}}
    assert "any" in namespace([{"name": "deep", "parameters": {"properties": {"a": schema}}}])


def test_namespace__nonsense__does_not_raise() -> None:
    parameters: Any
    for parameters in (
        None,
        1,
        [],
        {"properties": 1},
        {"properties": {"a": 1, "b": {"enum": 1, "type": []}}, "required": 1},
    ):
        namespace([{"name": None, "description": 7, "parameters": parameters}])
