"""Reading the registry."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction_service.registry import selectors, services
from compaction_service.registry.specs import UnknownModel
from tenants.scope import platform_scope


def _queries(work: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


def test_model_get__known_name__costs_one_query_and_then_none(registry: None) -> None:
    assert _queries(lambda: selectors.model_get("openai/gpt-4o")) == 1
    assert _queries(lambda: selectors.model_get("openai/gpt-4o")) == 0
    assert selectors.model_get("openai/gpt-4o").name == "gpt-4o"


def test_model_get__after_the_cache_expired__reads_again(own_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old = selectors.model_get(own_model)
    with platform_scope():
        services.override_set(own_model, context_window=20_000)
    elsewhere = {own_model: (time.monotonic() + 30, old)}  # what another process still holds
    monkeypatch.setattr(selectors, "_cache", elsewhere)
    assert selectors.model_get(own_model).context_window == 10_000
    elsewhere[own_model] = (time.monotonic(), old)
    assert selectors.model_get(own_model).context_window == 20_000


def test_model_get__more_names_than_it_keeps__does_not_grow(registry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_CACHE_SIZE", 3)
    for number in range(10):
        selectors.model_get(f"proxy-{number}/gpt-4o")
    assert len(selectors._cache) <= 3


@pytest.mark.parametrize("name", ["gtp-4o", "", "\0", "gpt-4o\0", "\ud800", "x" * 10_000])
def test_model_get__unknown_name__raises_with_the_nearest(registry: None, name: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        selectors.model_get(name)
    assert caught.value.name == name
    assert len(caught.value.nearest) <= 5
    assert name != "gtp-4o" or caught.value.nearest[0] == "gpt-4o"


def test_summarizer_spec__any_name__has_a_window(registry: None) -> None:
    assert selectors.summarizer_spec("gpt-4o").context_window == 128_000
    unknown = selectors.summarizer_spec("our-proxy/house-model")
    assert (unknown.context_window, unknown.input_price) == (32_000, None)


@pytest.mark.parametrize(
    ("q", "some"), [("SONNET-4-5", True), ("bedrock", True), ("no such thing", False), ("\0", False)]
)
def test_model_list__q__searches_names_and_providers_in_any_case(registry: None, q: str, some: bool) -> None:
    assert selectors.model_list(q).exists() is some
