"""Windows and costs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction_service.registry.specs import ModelSpec, Window, WindowUnknown, cost, unlisted, window_for

MODEL = ModelSpec(
    "acme-1", "acme", 100_000, 8_000, "o200k_base/other", 1.1, Decimal("0.000002"), Decimal("0.00001"), "override"
)
WINDOWLESS = ModelSpec("acme-2", "acme", None, None, "o200k_base", 1.0)


def test_window_for__conversation_with_a_window__is_the_requests() -> None:
    assert window_for(5_000, MODEL) == Window(5_000, "request")
    assert window_for(5_000, WINDOWLESS) == Window(5_000, "request")


def test_window_for__conversation_without__is_the_registrys() -> None:
    assert window_for(None, MODEL) == Window(100_000, "override")


def test_window_for__nobody_knows__raises() -> None:
    with pytest.raises(WindowUnknown, match="acme-2"):
        window_for(None, WINDOWLESS)


def test_cost__both_prices_known__is_exact() -> None:
    assert cost(MODEL, 1_000, 10) == Decimal("0.0021")


def test_cost__a_price_it_needs_is_unknown__is_none() -> None:
    half = ModelSpec("acme-3", "", 1, None, "o200k_base", 1.0, Decimal("0.1"), None)
    assert cost(WINDOWLESS, 1, 1) is None
    assert cost(half, 1, 1) is None
    assert cost(half, 2, 0) == Decimal("0.2")


def test_unlisted__any_name__is_counted_by_its_family_with_a_window_of_32000() -> None:
    spec = unlisted("my-proxy/claude-sonnet-4-5-custom")
    assert spec.context_window == 32_000
    assert spec.tokenizer == "cl100k_base/claude-4.5"
    assert cost(spec, 1, 1) is None


def test_spec__method__is_its_counters() -> None:
    assert MODEL.method == "estimate"
    assert WINDOWLESS.method == "exact"
