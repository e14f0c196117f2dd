"""Fields, levels and presets of a policy, and the numbers that follow from it (semantics 2)."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine import policy, policy_fields
from compaction_service.engine.policy import Limits, Policy, PolicyError

DEFAULTS: dict[str, Any] = {
    "enabled": False,
    "preset": None,
    "strategy": "sliding",
    "threshold": 0.8,
    "max_tokens": None,
    "target": 0.5,
    "preserve_recent_turns": 1,
    "keep_last_user_request": True,
    "keep_first_user_request": False,
    "summary_max_tokens": 4096,
    "summary_chain_max_tokens": 8192,
    "target_compression_ratio": 8,
    "summary_sections": ["Overall Goal", "Next Steps", "Active Files"],
    "instructions": None,
    "language": None,
    "summarizer_model": None,
    "fallback_models": None,
    "extractive_fallback": True,
    "mask_tool_results": True,
    "keep_tool_results": 3,
    "preserve_tools": ["read_file"],
    "mask_min_chars": 100,
    "mask_min_reclaim_tokens": 2000,
    "token_counter": "auto",
    "reserve_output_tokens": None,
    "transparency": "full",
    "log_retention": 100,
    "resummarize_max_passes": 4,
}

GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from([None, *policy.PRESETS]),
        "threshold": st.floats(0.1, 1) | st.none(),
        "max_tokens": st.integers(1, 10**6) | st.none(),
        "preserve_recent_turns": st.integers(0, 50) | st.none(),
        "token_counter": st.sampled_from([None, "auto", "chars4"]),
        "preserve_tools": st.lists(st.sampled_from(["a", "b"])) | st.none(),
        "fallback_models": st.lists(st.sampled_from(["m", "n"])) | st.none(),
        "target": st.sampled_from([0, 0.25, None]),
    },
)
NAMES = ("service", "tenant", "conversation", "call")


def effective(*levels: dict[str, Any]) -> Policy:
    return policy.resolve(list(zip(NAMES, levels, strict=False)))[0]


def test_policy__nothing_set__has_the_defaults_and_their_source() -> None:
    found, sources = policy.resolve([])

    assert found.as_dict() == DEFAULTS
    assert sources == dict.fromkeys(DEFAULTS, "default")
    assert list(DEFAULTS) == [field.name for field in fields(Policy)] == list(policy_fields.RULES)


@pytest.mark.parametrize("name", policy.PRESETS)
def test_resolve__preset__sets_its_fields_and_passes_the_checks(name: str) -> None:
    found, sources = policy.resolve([("tenant", {"preset": name})])

    policy.check(policy.PRESETS[name])
    assert found.as_dict() == DEFAULTS | {"preset": name} | policy.PRESETS[name]
    assert {field for field, level in sources.items() if level == "tenant"} == {"preset", *policy.PRESETS[name]}


def test_resolve__several_levels__the_most_specific_wins_field_by_field() -> None:
    found, sources = policy.resolve(
        [
            ("service", {"target": 0.1, "log_retention": 5, "strategy": "sliding"}),
            ("tenant", {"target": 0.2, "log_retention": None}),
            ("conversation", {"target": 0.3}),
            ("call", {"strategy": "hierarchical"}),
        ]
    )

    assert (found.target, found.log_retention, found.strategy) == (0.3, 5, "hierarchical")
    assert (sources["target"], sources["log_retention"], sources["strategy"]) == ("conversation", "service", "call")
    assert sources["enabled"] == "default"


def test_resolve__preset_and_fields_in_one_level__the_fields_win() -> None:
    found = effective({"preserve_recent_turns": 7}, {"preset": "infinite_context", "log_retention": 9})

    assert (found.preserve_recent_turns, found.log_retention, found.threshold) == (20, 9, 0.75)


def test_resolve__field_more_specific_than_preset__wins() -> None:
    assert effective({"preset": "navigator"}, {"threshold": 0.6}).threshold == 0.6


def test_resolve__more_specific_preset__replaces_the_general_one_as_a_whole() -> None:
    found = effective({"preset": "three_layer", "keep_tool_results": 9}, {"preset": "navigator"})

    assert (found.preset, found.max_tokens, found.token_counter) == ("navigator", None, "auto")
    assert found.keep_tool_results == 9


def test_resolve__null_preset__leaves_the_general_one_in_force() -> None:
    assert effective({"preset": "three_layer"}, {"preset": None}).max_tokens == 50_000


def test_resolve__threshold_more_specific_than_max_tokens__puts_it_out_of_force() -> None:
    found, sources = policy.resolve([("tenant", {"max_tokens": 9}), ("conversation", {"threshold": 0.5})])

    assert (found.max_tokens, found.threshold, sources["max_tokens"]) == (None, 0.5, "conversation")


def test_resolve__threshold_and_max_tokens_in_one_level__max_tokens_replaces_it() -> None:
    assert effective({"max_tokens": 9, "threshold": 0.5}).max_tokens == 9


def test_resolve__threshold_beside_three_layer__replaces_its_max_tokens() -> None:
    found = effective({"preset": "three_layer", "threshold": 0.5})

    assert (found.max_tokens, found.exceed, found.messages_only) == (None, False, True)


def test_resolve__model_that_is_never_called__stays_as_it_was_stored() -> None:
    stored = {"summarizer_model": "ollama/llama3", "fallback_models": ["x", "http://127.0.0.1"]}
    assert policy.resolve([("conversation", stored)])[0].summarizer_model == "ollama/llama3"
    assert policy.Policy.from_dict(stored).fallback_models == ("x", "http://127.0.0.1")


@pytest.mark.parametrize(
    ("level", "field"),
    [
        ({"summarizer_model": "oobabooga/http://169.254.169.254/latest"}, "summarizer_model"),
        ({"summarizer_model": "ollama/llama3"}, "summarizer_model"),
        ({"fallback_models": ["gpt-4o-mini", "bedrock/x"]}, "fallback_models.1"),
    ],
)
def test_check__model_that_is_never_called__names_the_field(level: dict[str, Any], field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy.check(level)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["gpt-4o-mini", "openai/ollama/x", "my/model", "ollama", "gemini/gemini-x", "a:b"])
def test_check__any_other_name_of_a_model__passes(name: str) -> None:
    policy.check({"summarizer_model": name, "fallback_models": [name]})


def test_resolve__invalid_level__raises() -> None:
    with pytest.raises(PolicyError, match="target"):
        effective({"target": 2})


@given(st.lists(GIVEN, max_size=4))
def test_from_dict__any_effective_policy__gives_it_back(levels: list[dict[str, Any]]) -> None:
    found = effective(*levels)

    assert Policy.from_dict(json.loads(json.dumps(found.as_dict()))) == found


@given(GIVEN, GIVEN)
def test_merge__patch__replaces_and_unsets(old: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = policy.merge(old, patch)

    assert None not in merged.values()
    for name in {*old, *patch}:
        assert merged.get(name) == patch.get(name, old.get(name))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("enabled", [1, "true", []]),
        ("preset", ["none", [], {}, True]),
        ("strategy", ["rolling", 3]),
        ("threshold", [0, -0.1, 1.01, True, "0.5", float("nan"), 10**400]),
        ("max_tokens", [0, 1.0, True, 2**53, "5"]),
        ("target", [1, 1.5, -0.1, False, float("inf")]),
        ("preserve_recent_turns", [-1, 2.5, "1"]),
        ("summary_max_tokens", [63]),
        ("summary_chain_max_tokens", [0]),
        ("target_compression_ratio", [1, 0, float("inf"), 10**400, True]),
        ("summary_sections", [[], "Goal", [""], ["  "], ["a", "A "], ["a\nb"], ["# a"], [1], {"a": 1}, ["\ud800"]]),
        ("instructions", [1, "\0", "\ud800", ["x"]]),
        ("language", [{}]),
        ("summarizer_model", ["", " ", 1]),
        ("fallback_models", ["gpt-4o", [""], [None]]),
        ("preserve_tools", ["read_file", [1]]),
        ("mask_min_chars", [-1]),
        ("mask_min_reclaim_tokens", [-1, True]),
        ("token_counter", ["tiktoken"]),
        ("reserve_output_tokens", [-1, 0.5]),
        ("transparency", ["none"]),
        ("log_retention", [-1]),
        ("resummarize_max_passes", [0, 11]),
        ("unheard_of", [1, None]),
    ],
)
def test_check__value_that_cannot_be__names_the_field(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(PolicyError) as caught:
            policy.check({"enabled": True, field: value})
        assert caught.value.field == field
        assert caught.value.detail.endswith(".")


@pytest.mark.parametrize(
    "level",
    [
        {"threshold": 1, "target": 0, "target_compression_ratio": 2},
        {"threshold": 0.5, "preset": "navigator", "max_tokens": 1},
        {"keep_tool_results": 0, "mask_min_reclaim_tokens": 0, "log_retention": 0, "reserve_output_tokens": 0},
        {"fallback_models": [], "preserve_tools": [], "summary_sections": ["目标"], "instructions": "{x} %s"},
        dict.fromkeys(DEFAULTS),
        {},
    ],
)
def test_check__value_at_the_edge_of_its_range__passes(level: dict[str, Any]) -> None:
    policy.check(level)


@pytest.mark.parametrize(
    ("level", "exceed", "messages_only", "prefix"),
    [
        ({}, False, False, ""),
        ({"preset": "navigator"}, True, False, ""),
        ({"preset": "navigator", "threshold": 0.5}, True, False, ""),
        ({"preset": "three_layer"}, True, True, "[compressed] "),
        ({"preset": "infinite_context"}, False, False, ""),
        ({"max_tokens": 10}, True, False, ""),
    ],
)
def test_policy__rules_without_a_field__follow_the_effective_preset(
    level: dict[str, Any], exceed: bool, messages_only: bool, prefix: str
) -> None:
    found = effective(level)

    assert (found.exceed, found.messages_only, found.summary_prefix) == (exceed, messages_only, prefix)


@pytest.mark.parametrize(
    ("level", "window", "max_output", "expected"),
    [
        ({}, 128_000, 16_384, Limits(128_000, 4096, 102_400, 102_400, 4096)),
        ({}, 8192, 1000, Limits(8192, 1000, 6553, 6553, 1638)),
        ({}, 8192, None, Limits(8192, 2048, 6553, 6144, 1536)),
        ({"reserve_output_tokens": 0, "threshold": 1}, 1000, None, Limits(1000, 0, 1000, 1000, 250)),
        ({"max_tokens": 500_000}, 100_000, None, Limits(100_000, 4096, 500_000, 95_904, 4096)),
        ({"preset": "infinite_context"}, 100_000, None, Limits(100_000, 4096, 75_000, 75_000, 2000)),
        ({"summary_max_tokens": 64}, 100, None, Limits(100, 25, 80, 75, 64)),
        ({"threshold": 1e-9}, 100, None, Limits(100, 25, 1, 1, 64)),
    ],
)
def test_limit__policy_and_model__gives_the_numbers(
    level: dict[str, Any], window: int, max_output: int | None, expected: Limits
) -> None:
    assert policy.limit(effective(level), window, max_output) == expected


def test_limit__reserve_takes_the_window__names_the_field() -> None:
    with pytest.raises(PolicyError) as caught:
        policy.limit(effective({"reserve_output_tokens": 1000}), 1000, None)

    assert caught.value.field == "reserve_output_tokens"


@pytest.mark.parametrize(
    ("level", "tokens", "crossed"),
    [
        ({}, 799, False),
        ({}, 800, True),
        ({"preset": "navigator"}, 800, False),
        ({"preset": "navigator"}, 801, True),
        ({"max_tokens": 500}, 500, False),
        ({"max_tokens": 500}, 501, True),
    ],
)
def test_crossed__tokens_at_the_limit__reached_or_exceeded_as_the_policy_says(
    level: dict[str, Any], tokens: int, crossed: bool
) -> None:
    found = effective({"reserve_output_tokens": 0, **level})

    assert policy.crossed(found, policy.limit(found, 1000, None), tokens) is crossed
