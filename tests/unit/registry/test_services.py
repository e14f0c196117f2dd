"""Syncing and overriding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction

from compaction_service.registry import catalogue, selectors, services
from compaction_service.registry.models import Model
from compaction_service.registry.specs import UnknownModel
from tenants.scope import platform_scope


@pytest.fixture
def platform(registry: None) -> Iterator[None]:
    """Inside a transaction of the platform that is undone."""
    with platform_scope():
        yield
        transaction.set_rollback(True, using="platform")


def test_sync__a_second_time__changes_nothing(platform: None) -> None:
    counts = services.sync().counts
    assert (counts["added"], counts["changed"]) == (0, 0)
    assert counts["same"] == len(catalogue.read())


def test_sync__changed_list__updates_adds_and_keeps_absent_rows(
    platform: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = catalogue.read()
    first, second, *rest = entries
    changed = replace(first, context_window=777)
    monkeypatch.setattr(catalogue, "read", lambda: [changed, replace(first, name="brand-new"), *rest])
    expected = services.drift()
    seen: list[tuple[int, int]] = []
    found = services.sync(lambda done, total: seen.append((done, total)))
    assert found == expected
    assert (found.added, found.changed) == (["brand-new"], [first.name])
    assert second.name in found.absent
    assert seen == [(2, 2)]
    assert Model.objects.get(name=first.name).context_window == 777
    assert Model.objects.filter(name=second.name).exists()


def test_override__some_values__win_and_survive_a_sync(platform: None, monkeypatch: pytest.MonkeyPatch) -> None:
    services.override_set("gpt-4o", context_window=50_000, input_price="0.5")
    entries = [replace(entry, max_output=999) if entry.name == "gpt-4o" else entry for entry in catalogue.read()]
    monkeypatch.setattr(catalogue, "read", lambda: entries)
    services.sync()
    row = Model.objects.get(name="gpt-4o")
    assert (row.source, row.overridden) == ("override", ["context_window", "input_price"])
    assert (row.context_window, row.input_price, row.max_output) == (50_000, Decimal("0.5"), 999)
    assert row.spec.window_source == "override"


def test_override__none__gives_litellms_value_back(platform: None) -> None:
    services.override_set("gpt-4o", context_window=50_000, factor=2.0)
    row = services.override_set("gpt-4o", context_window=None)
    assert (row.context_window, row.factor, row.overridden) == (128_000, 2.0, ["factor"])
    assert services.override_clear("gpt-4o") is True
    assert services.override_clear("gpt-4o") is False
    row.refresh_from_db()
    assert (row.source, row.factor, row.overridden) == ("litellm", 1.0, [])


def test_override__tokenizer__brings_its_factor(platform: None) -> None:
    row = services.override_set("gpt-4o", tokenizer="cl100k_base/llama")
    assert (row.factor, row.spec.method) == (1.02, "estimate")


def test_override__unlisted_model__exists_until_cleared(platform: None) -> None:
    services.override_set("acme-large", context_window=10_000)
    assert selectors.model_get("acme-large").context_window == 10_000
    services.sync()
    assert services.override_clear("acme-large") is True
    with pytest.raises(UnknownModel):
        selectors.model_get("acme-large")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"context_window": 0}, "context_window"),
        ({"context_window": True}, "context_window"),
        ({"max_output": 2**31}, "max_output"),
        ({"tokenizer": "acme"}, "tokenizer"),
        ({"factor": float("nan")}, "factor"),
        ({"factor": 11}, "factor"),
        ({"input_price": "much"}, "input_price"),
        ({"output_price": -1}, "output_price"),
        ({"output_price": float("inf")}, "output_price"),
        ({"windows": 1}, "windows"),
    ],
)
def test_override__impossible_value__names_the_field(values: dict[str, Any], field: str) -> None:
    with pytest.raises(services.RegistryError) as caught:
        services.override_set("gpt-4o", **values)
    assert caught.value.field == field


def test_registry__application_role__cannot_write_it(registry: None) -> None:
    with pytest.raises(DatabaseError, match="permission denied"):
        Model.objects.filter(name="gpt-4o").update(context_window=1)


def test_sync_registry__command__prints_counts(registry: None) -> None:
    out = StringIO()
    call_command("sync_registry", stdout=out)
    assert "unchanged" in out.getvalue()
    assert str(len(catalogue.read())) in out.getvalue()


def test_sync_registry__check__prints_what_would_change_and_changes_nothing(
    registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = catalogue.read()
    monkeypatch.setattr(catalogue, "read", lambda: [*entries, replace(entries[0], name="brand-new")])
    out = StringIO()
    call_command("sync_registry", "--check", stdout=out)
    assert "brand-new" in out.getvalue()
    assert not Model.objects.filter(name="brand-new").exists()


def test_sync_registry__without_litellms_file__fails_and_says_so(
    registry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> list[catalogue.Entry]:
        raise catalogue.CatalogueMissingError("litellm is not installed.")

    monkeypatch.setattr(catalogue, "read", missing)
    with pytest.raises(CommandError, match="not installed"):
        call_command("sync_registry", stdout=StringIO())
