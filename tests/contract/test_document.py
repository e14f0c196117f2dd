"""The OpenAPI document: up to date, complete, and true to the routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from tests.contract.document import JSON_TYPE, PATH, Operation, check, document, operations, routes

ERROR = {"$ref": "#/components/schemas/Error"}


def _properties(schema: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property in a schema, with where it is."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from _properties(item, f"{at}[{number}]")
    elif isinstance(schema, dict):
        for name, found in schema.get("properties", {}).items():
            yield f"{at}.{name}", found
            yield from _properties(found, f"{at}.{name}")
        for key in ("items", "oneOf", "anyOf", "allOf", "additionalProperties"):
            if isinstance(schema.get(key), (dict, list)):
                yield from _properties(schema[key], f"{at}.{key}")


def _bodies(one: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON media types of the request and of the answers that are no errors."""
    if "requestBody" in one.body:
        yield "request", one.body["requestBody"]["content"][JSON_TYPE]
    for status, answer in one.body["responses"].items():
        if int(status) < 300 and JSON_TYPE in answer.get("content", {}):
            yield status, answer["content"][JSON_TYPE]


def test_document__generated_anew__is_the_committed_one(tmp_path: Any) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "new.yaml"))
    assert (tmp_path / "new.yaml").read_text() == PATH.read_text(), "run `make schema`"


def test_routes__all__are_documented_and_nothing_else_is() -> None:
    assert {(one.method, one.path) for one in operations()} == set(routes())


def test_operations__all__are_named_resource_verb_and_once() -> None:
    names = [one.id for one in operations()]
    assert len(names) == len(set(names))
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)] == []


def test_operations__all__have_summary_description_and_a_tag_that_is_explained() -> None:
    explained = {tag["name"] for tag in document()["tags"] if tag["description"]}
    bare = [one.id for one in operations() if not (one.body.get("summary") and one.body.get("description"))]
    assert bare == []
    assert {one.id: one.body["tags"] for one in operations() if not explained.issuperset(one.body["tags"])} == {}


def test_operations__all__show_an_example_of_each_body() -> None:
    bare = [f"{one.id} {what}" for one in operations() for what, media in _bodies(one) if not media.get("examples")]
    assert bare == []


def test_operations__all_parameters__are_described() -> None:
    bare = [f"{one.id} {p['name']}" for one in operations() for p in one.parameters if not p.get("description")]
    assert bare == []


def test_operations__all_answers__are_described() -> None:
    bare = [f"{one.id} {s}" for one in operations() for s, a in one.body["responses"].items() if not a["description"]]
    assert bare == []


def test_examples__all__are_what_their_schema_says() -> None:
    for one in operations():
        for what, media in _bodies(one):
            for name, example in media.get("examples", {}).items():
                try:
                    check(media["schema"], example["value"])
                except Exception as error:
                    raise AssertionError(f"{one.id} {what} {name}") from error


def test_components__all_fields__are_described() -> None:
    schemas = document()["components"]["schemas"]
    bare = [
        at for name, schema in schemas.items() for at, one in _properties(schema, name) if not one.get("description")
    ]
    assert bare == []


def test_components__enumerations__have_names_of_their_own() -> None:
    assert [name for name in document()["components"]["schemas"] if name.endswith("Enum")] == []


@pytest.mark.parametrize("status", ["400", "401", "403", "405", "429", "500", "503"])
def test_operations__all__declare_the_errors_that_any_may_have(status: str) -> None:
    wrong = [one.id for one in operations() if _error(one, status) != ERROR]
    assert wrong == []


def test_operations__with_a_path_parameter_or_body__declare_their_errors() -> None:
    for one in operations():
        if "{" in one.path:
            assert _error(one, "404") == ERROR, one.id
        if "requestBody" in one.body:
            assert [_error(one, status) for status in ("413", "415")] == [ERROR, ERROR], one.id


def test_operations__all__need_a_bearer_key() -> None:
    schemes = document()["components"]["securitySchemes"]
    for one in operations():
        first = next(iter(one.body["security"][0]))
        assert schemes[first]["type"] == "http", one.id
        assert schemes[first]["scheme"] == "bearer", one.id


def test_lists__all__share_the_shape_of_a_page() -> None:
    schemas = document()["components"]["schemas"]
    pages = {name: schema for name, schema in schemas.items() if name.endswith("Page")}
    assert len(pages) >= 6
    for name, schema in pages.items():
        assert set(schema["required"]) >= {"data", "next_cursor"}, name
        assert "null" in schema["properties"]["next_cursor"]["type"], name


def test_span__keyword_of_python__is_a_field_all_the_same() -> None:
    assert set(document()["components"]["schemas"]["Span"]["properties"]) == {"from", "to"}


def test_document__as_yaml__has_no_reference_that_leads_nowhere() -> None:
    text = PATH.read_text()
    schemas = document()["components"]["schemas"]
    assert {name for name in re.findall(r"#/components/schemas/(\w+)", text) if name not in schemas} == set()
    assert yaml.safe_load(text)["openapi"] == "3.1.0"


def _error(one: Operation, status: str) -> Any:
    return one.body["responses"].get(status, {}).get("content", {}).get(JSON_TYPE, {}).get("schema")
