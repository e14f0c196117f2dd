"""Reading litellm's file."""

from __future__ import annotations

import importlib.util
from decimal import Decimal
from typing import Any

import pytest

from compaction_service.registry import catalogue


def test_read__the_installed_file__lists_conversational_models_with_windows_and_prices() -> None:
    entries = {entry.name: entry for entry in catalogue.read()}
    assert len(entries) > 2000
    model = entries["gpt-4o"]
    assert (model.provider, model.context_window, model.max_output) == ("openai", 128_000, 16_384)
    assert model.input_price == Decimal("0.0000025")
    assert "text-embedding-3-small" not in entries
    assert "sample_spec" not in entries
    assert any(entry.context_window is None for entry in entries.values())


def test_parse__window__falls_back_to_max_tokens_and_keeps_rows_without_any() -> None:
    listed: dict[str, Any] = {
        "b": {"mode": "chat", "max_tokens": 4096},
        "a": {"mode": "responses", "max_input_tokens": 8192, "max_tokens": 4096},
        "c": {"mode": "chat", "max_input_tokens": "max input tokens, if told", "litellm_provider": None},
        "d": {"mode": "embedding", "max_tokens": 1},
        "e": "not an object",
    }
    found = [(entry.name, entry.context_window) for entry in catalogue.parse(listed)]
    assert found == [("a", 8192), ("b", 4096), ("c", None)]


@pytest.mark.parametrize(
    ("given", "price"),
    [
        (2.5e-06, Decimal("0.0000025")),
        (9.499999999999999e-07, Decimal("0.00000095")),
        (0, Decimal(0)),
        (None, None),
        ("free", None),
        (-1, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_parse__price__is_a_decimal_without_the_floats_tail(given: Any, price: Decimal | None) -> None:
    entry = catalogue.parse({"m": {"mode": "chat", "input_cost_per_token": given}})[0]
    assert entry.input_price == price


def test_read__without_litellm__says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(catalogue.CatalogueMissingError, match="not installed"):
        catalogue.read()
