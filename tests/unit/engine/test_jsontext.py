"""JSON text of stored messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compaction_service.engine import jsontext

SURROGATES = st.characters(categories=["Cs"])
TEXT = st.text() | st.text(SURROGATES, max_size=1)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@given(VALUES)
@example({"\0": ["\ud800", 10**40, -(2**63), 2**64, 1e308, None]})
def test_dumps__any_json_value__is_storable_text_and_reads_back_exactly(value: Any) -> None:
    text = jsontext.dumps(value)

    text.encode()  # no lone surrogate is left
    assert "\0" not in text
    assert jsontext.loads(text) == value
    assert jsontext.loads(text.encode()) == value


def test_dumps__plain_message__is_compact() -> None:
    assert jsontext.dumps({"role": "user", "content": "naïve"}) == '{"role":"user","content":"naïve"}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("beside", [None, "\ud800"])
def test_dumps__number_that_is_not_finite__raises(number: float, beside: str | None) -> None:
    with pytest.raises(ValueError, match=r"NaN|JSON compliant"):
        jsontext.dumps({"a": [1.5, {"b": number}], "c": beside})


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "-Infinity", "1e999", "[-1e999]", '["\\ud800", 1e999]', "", "{", '"a\0"', "[1,]", "9" * 5000],
)
def test_loads__not_json__raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsontext.loads(text)


@pytest.mark.parametrize("raw", [b'"\xff"', '"x"'.encode("utf-16"), b'\xef\xbb\xbf"x"'])
def test_loads__bytes_that_are_not_plain_utf8__raises_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsontext.loads(raw)


def test_loads__integer_beyond_64_bits__stays_exact() -> None:
    assert jsontext.loads('{"n": 123456789012345678901234567890}') == {"n": 123456789012345678901234567890}


@pytest.mark.parametrize("depth", [1, 199, 200])
@pytest.mark.parametrize("prefix", ["", '"\\ud800",'])
def test_loads__nesting_up_to_the_limit__is_read(depth: int, prefix: str) -> None:
    assert json.dumps(jsontext.loads(f"[{prefix}{nested(depth - 1) or 1}]")).count("[") == depth


@pytest.mark.parametrize("text", [nested(201), '{"a":' * 201 + "1" + "}" * 201, nested(2000), nested(200_000)])
@pytest.mark.parametrize("tail", ["", ',"\\ud800"'])
def test_loads__nesting_beyond_the_limit__raises_value_error(text: str, tail: str) -> None:
    whole = f"[{text}{tail}]" if tail else text

    with pytest.raises(ValueError, match="nested deeper than 200"):
        jsontext.loads(whole)


def test_loads__many_brackets_inside_a_string__is_read() -> None:
    text = jsontext.dumps({"content": "{[" * 1000})

    assert jsontext.loads(text) == {"content": "{[" * 1000}


@pytest.mark.parametrize(
    ("value", "length"),
    [({"a": "é"}, 9), ([1, 2], 5), ("\ud800", 3), ("\n", 4), ("\0", 8), ("\U0001f600", 3), ({}, 2)],
)
def test_chars__value__is_the_length_of_compact_unescaped_json(value: Any, length: int) -> None:
    assert jsontext.chars(value) == length
