"""Tables of the docs say what the code says: policy fields, error codes, settings."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from compaction_service.engine.policy import PRESETS, Policy, PolicyError, check
from tests.unit.docs.pages import ROOT, code, rows

FIELDS = {code(row[0]): row for row in rows(ROOT / "docs/policy.md", first="field")}
INTERVAL = re.compile(r"(?:(\d+) (<=?) )?x(?: (<=?|>=?) (\d+))?")
# Codes of the framework that our requests can meet, with the status they come with.
FRAMEWORK = {
    **dict.fromkeys(
        (
            "parse_error", "required", "null", "blank", "not_a_list", "not_a_dict", "invalid_choice",
            "min_value", "max_value", "max_length", "min_length", "max_string_length", "overflow",
            "null_characters_not_allowed", "surrogate_characters_not_allowed",
        ),
        400,
    ),
    "not_authenticated": 401,
    "authentication_failed": 401,
    "permission_denied": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "unsupported_media_type": 415,
    "throttled": 429,
}  # fmt: skip


def test_policy__fields_and_defaults__are_those_of_the_code() -> None:
    told = {name: json.loads(code(row[1])) for name, row in FIELDS.items()}
    assert told == Policy().as_dict()
    assert list(told) == [field.name for field in fields(Policy)]


def test_policy__presets__set_what_the_table_says() -> None:
    told: dict[str, dict[str, Any]] = {name: {} for name in PRESETS}
    for name, row in FIELDS.items():
        for preset, value in re.findall(r"(\w+) `([^`]*)`", row[4]):
            told[preset][name] = json.loads(value)
    assert told == PRESETS


def _accepted(field: str, value: Any) -> bool:
    try:
        check({field: value})
    except PolicyError:
        return False
    return True


@pytest.mark.parametrize("field", FIELDS)
def test_policy__range__is_the_one_the_code_keeps(field: str) -> None:
    told = FIELDS[field][2]
    if told == "true or false":
        assert _accepted(field, True)
        assert not _accepted(field, 1)
    elif told.startswith("one of "):
        assert all(_accepted(field, choice) for choice in re.findall(r"`(\w+)`", told))
        with pytest.raises(PolicyError, match=re.escape(told.replace("`", "").removeprefix("one of "))):
            check({field: "another"})
    elif found := INTERVAL.fullmatch(told):
        low, below, above, high = found.groups()
        if above and above.startswith(">"):  # x >= 1
            low, below, above, high = high, above.replace(">", "<"), None, None
        assert (_accepted(field, int(low)), _accepted(field, int(low) - 1)) == (below == "<=", False)
        assert _accepted(field, int(low) + 1) or high == "1"
        if high:
            assert (_accepted(field, int(high)), _accepted(field, int(high) + 1)) == (above == "<=", False)
        else:
            assert _accepted(field, 10**9)
    elif told in ("names", "headings"):
        assert _accepted(field, ["A name"])
        assert not _accepted(field, "A name")
        assert _accepted(field, []) == (told == "names")
    else:
        assert told in ("text", "name")
        assert _accepted(field, "text")
        assert _accepted(field, "") == (told == "text")


def _trees() -> Iterator[ast.Module]:
    for folder in ("compaction_service", "tenants", "worker"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield ast.parse(path.read_text(encoding="utf-8"))


def _nodes() -> Iterator[ast.AST]:
    for tree in _trees():
        yield from ast.walk(tree)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _codes() -> dict[str, set[int]]:
    """Codes of errors that our own code names, with their statuses."""
    found: dict[str, set[int]] = {}
    for node in _nodes():
        match node:
            case ast.Call() if _name(node) in ("ApiError", "answer", "limit_error") and len(node.args) > 2:
                status, told = _constant(node.args[0]), _constant(node.args[1])
                if isinstance(told, str):
                    found.setdefault(told, set()).update({status} if isinstance(status, int) else set())
            case ast.Call() if _name(node) == "MessageError" and isinstance(_constant(node.args[0]), str):
                found.setdefault(_constant(node.args[0]), set()).add(400)
            case ast.Call() if _name(node) in ("ErrorDetail", "ValidationError") and _keyword(node, "code"):
                found.setdefault(_constant(_keyword(node, "code")), set()).add(400)
            case ast.Assign(targets=[ast.Name(id="default_error_messages")], value=ast.Dict(keys=keys)):
                for key in keys:
                    found.setdefault(_constant(key), set()).add(400)
    return found


def test_api__error_codes__are_those_of_the_code() -> None:
    told: dict[str, int] = {code(row[0]): int(row[1]) for row in rows(ROOT / "docs/api.md", first="code")}
    ours = _codes()
    assert set(told) == set(ours) | set(FRAMEWORK)
    wrong = {name for name, statuses in ours.items() if statuses and told[name] not in statuses}
    assert wrong == set()
    assert {name: told[name] for name in FRAMEWORK} == FRAMEWORK


READERS = ("text", "strings", "integer", "boolean", "peppers", "database", "_database")


def _settings() -> dict[str, ast.Call]:
    """The settings that are read by a literal name."""
    return {
        _constant(node.args[0]): node
        for node in _nodes()
        if isinstance(node, ast.Call) and _name(node) in READERS and node.args and _is_variable(_constant(node.args[0]))
    }


def _is_variable(name: Any) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[A-Z][A-Z_]+", name) is not None


def _process_variables() -> set[str]:
    """What is read of the process's environment directly."""
    found: set[str] = set()
    for node in _nodes():
        match node:
            case ast.Call(
                func=ast.Attribute(attr="get" | "setdefault", value=value), args=[ast.Constant(value=name), *_]
            ):
                if ast.unparse(value).endswith("environ") and _is_variable(name):
                    found.add(str(name))
            case ast.Compare(left=ast.Constant(value=name), comparators=[where]):
                if ast.unparse(where).endswith("environ") and _is_variable(name):
                    found.add(str(name))
    return found


def _default(call: ast.Call) -> str | None:
    """The default as the table writes it; None where the code gives none."""
    node = call.args[1] if len(call.args) > 1 else _keyword(call, "default")
    if node is None or _name(call) in ("database", "_database"):
        return None
    value = eval(compile(ast.Expression(node), "<default>", "eval"), {})  # noqa: S307 -- a literal of our own settings
    return ",".join(value) if isinstance(value, tuple) else str(value)


def test_configuration__variables_and_defaults__are_those_of_the_code() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", page.partition("## The compose file")[0], re.MULTILINE))
    settings = _settings()
    assert set(told) == set(settings) | _process_variables()
    for name, call in settings.items():
        if (default := _default(call)) is not None:
            assert told[name] == f"`{default}`", name
        elif _name(call) == "boolean":
            assert told[name] == "`false`", name


def test_configuration__lines_of_the_example_file__are_told() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    names = re.findall(r"^([A-Z_]+)=", (ROOT / "docker/env.example").read_text(), re.MULTILINE)
    assert [name for name in names if f"`{name}`" not in page] == []
