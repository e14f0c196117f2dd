"""The committed OpenAPI document, walked and used as the judge of answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # drf-spectacular's own validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

PATH = Path(__file__).resolve().parents[2] / "compaction_service" / "openapi.yaml"
JSON_TYPE = "application/json"


class Operation(NamedTuple):
    """One method of one path."""

    method: str  # as HTTP writes it
    path: str  # as the document writes it: /v1/conversations/{ref}
    body: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.body["operationId"])

    @property
    def parameters(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("parameters", [])
        return found


@cache
def document() -> dict[str, Any]:
    """The document as committed."""
    found: dict[str, Any] = yaml.safe_load(PATH.read_text())
    return found


@cache
def operations() -> list[Operation]:
    """All operations, in the document's order."""
    return [
        Operation(method.upper(), path, body)
        for path, methods in document()["paths"].items()
        for method, body in methods.items()
    ]


def operation(operation_id: str) -> Operation:
    """The operation of this id."""
    return next(one for one in operations() if one.id == operation_id)


def check(schema: dict[str, Any], value: Any) -> None:
    """Raises jsonschema's ValidationError unless the value is what a schema of the document says."""
    _validator(schema).validate(value)


def check_answer(one: Operation, status: int, body: Any) -> None:
    """The same for the body of an answer; a status that is not documented is an error too."""
    answer = one.body["responses"][str(status)]
    if JSON_TYPE in answer.get("content", {}):
        check(answer["content"][JSON_TYPE]["schema"], body)


@cache
def _registry() -> Any:
    return Registry().with_resource("urn:api", DRAFT202012.create_resource(document()))


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(
        _absolute(schema), registry=_registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def _absolute(schema: Any) -> Any:
    """The schema with references that can be followed from outside the document."""
    if isinstance(schema, dict):
        return {k: f"urn:api{v}" if k == "$ref" else _absolute(v) for k, v in schema.items()}
    return [_absolute(item) for item in schema] if isinstance(schema, list) else schema


def routes() -> Iterator[tuple[str, str]]:
    """Method and route, as in the document, of every view below /v1."""
    for route, view in _patterns(get_resolver().url_patterns, "/"):
        cls = getattr(view, "view_class", None) or getattr(view, "cls", None)
        if route.startswith("/v1/") and cls is not None:
            for method in cls.http_method_names:
                if method not in ("head", "options") and hasattr(cls, method):
                    yield method.upper(), route


def _patterns(patterns: list[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for one in patterns:
        if isinstance(one, URLResolver):
            yield from _patterns(one.url_patterns, prefix + str(one.pattern))
        elif isinstance(one, URLPattern):
            yield _braces(prefix + str(one.pattern)), one.callback


def _braces(route: str) -> str:
    """`<uuid:compaction_id>` as `{compaction_id}`."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
