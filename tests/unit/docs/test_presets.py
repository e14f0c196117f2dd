"""The page on presets: its policies work, and the fields it maps to exist with the defaults it tells."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

from compaction_service.engine.policy import PRESETS, Policy, resolve
from tests.unit.docs.pages import ROOT, blocks, rows

PAGE = ROOT / "docs/presets.md"
POLICIES = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
FIELDS = {field.name for field in fields(Policy)}
SEED_002 = (
    "enabled", "strategy", "compactionThreshold", "preserveRecentTurns", "transparencyLevel", "logRetention",
    "maxSummaryChainTokens", "targetCompressionRatio", "llmInvoker", "modelId",
)  # fmt: skip


def test_presets__each__has_a_policy_to_start_from() -> None:
    assert [policy["preset"] for policy in POLICIES] == list(PRESETS)


@pytest.mark.parametrize("given", POLICIES, ids=lambda given: given["preset"])
def test_policy__of_the_page__is_accepted_and_switches_the_preset_on(given: dict[str, object]) -> None:
    policy, _ = resolve([("page", given)])
    assert policy.enabled
    assert policy.preset == given["preset"]


@pytest.mark.parametrize(("preset", "first"), [("navigator", "option"), ("infinite_context", "property")])
def test_table__of_options__names_fields_with_their_defaults(preset: str, first: str) -> None:
    policy, _ = resolve([("preset", {"preset": preset})])
    checked = 0
    for row in rows(PAGE, first=first):
        named = [name for name in re.findall(r"`(\w+)`", row[1]) if name in FIELDS]
        told = row[2].strip("`").replace(",", "")
        if not named or " " in told or "'" in told:  # told in words
            continue
        value = getattr(policy, named[0])
        assert (float(told) if told[0].isdigit() else told) == (str(value).lower() if told.isalpha() else value)
        checked += 1
    assert checked >= 2


def test_table__of_properties__has_all_ten() -> None:
    assert [row[0].strip("`") for row in rows(PAGE, first="property")] == list(SEED_002)
