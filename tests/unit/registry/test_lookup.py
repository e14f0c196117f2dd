"""Which registry name a given name means."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.registry import catalogue, lookup
from compaction_service.registry.lookup import Candidate

ROWS = [
    ("gpt-4o", "openai"),
    ("gpt-4o-2024-08-06", "openai"),
    ("azure/gpt-4o", "azure"),
    ("azure/gpt-4o-2024-08-06", "azure"),
    ("azure/eu/gpt-4o-2024-08-06", "azure"),
    ("vercel_ai_gateway/openai/gpt-4o", "vercel_ai_gateway"),
    ("gpt-4o-mini", "openai"),
    ("gpt-3.5-turbo", "openai"),
    ("azure/gpt-35-turbo", "azure"),
    ("ft:gpt-4o-2024-08-06", "openai"),
    ("claude-sonnet-4-5", "anthropic"),
    ("claude-sonnet-4-5-20250929", "anthropic"),
    ("anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock_converse"),
    ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock_converse"),
    ("vertex_ai/claude-sonnet-4-5@20250929", "vertex_ai-anthropic_models"),
    ("gmi/anthropic/claude-sonnet-4.5", "gmi"),
    ("claude-opus-4-1-20250805", "anthropic"),
    ("claude-opus-4-1-20250601", "anthropic"),
    ("databricks/databricks-claude-opus-4-1", "databricks"),
    ("mistral/mistral-large-latest", "mistral"),
    ("mistral/mistral-large-2407", "mistral"),
    ("ollama/llama3:8b", "ollama"),
    ("ollama/llama3:70b", "ollama"),
    ("deepinfra/Qwen/Qwen3-32B", "deepinfra"),
    ("gemini/gemini-2.5-pro", "gemini"),
    ("gemini-2.5-pro", "vertex_ai-language-models"),
]
CANDIDATES = [Candidate(name, provider, has_window=True) for name, provider in ROWS]


def _found(name: str) -> str | None:
    same = [candidate for candidate in CANDIDATES if lookup.key(candidate.name) == lookup.key(name)]
    best = lookup.best(name, same)
    return best.name if best else None


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        (" gpt-4o ", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4o"),
        ("azure/gpt-4o", "azure/gpt-4o"),
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("openrouter/openai/gpt-4o:free", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("azure/gpt-4o-2024-08-06", "azure/gpt-4o-2024-08-06"),
        ("gpt-4o-2031-01-01", "gpt-4o"),
        ("gpt-4o-latest", "gpt-4o"),
        ("gpt-35-turbo", "gpt-3.5-turbo"),
        ("azure/gpt-35-turbo-0613", "azure/gpt-35-turbo"),
        ("ft:gpt-4o-2024-08-06:acme::abc123", "ft:gpt-4o-2024-08-06"),
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5:beta", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929"),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "vertex_ai/claude-sonnet-4-5@20250929"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
        ("claude-opus-4-1", "claude-opus-4-1-20250805"),  # the newest of the plain names
        ("databricks/claude-opus-4-1", "databricks/databricks-claude-opus-4-1"),
        ("mistral-large-2407", "mistral/mistral-large-2407"),
        ("mistral/mistral-large-2501", "mistral/mistral-large-latest"),
        ("ollama/llama3:8b", "ollama/llama3:8b"),
        ("qwen3-32b", "deepinfra/Qwen/Qwen3-32B"),
        ("gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini/gemini-2.5-pro-latest", "gemini/gemini-2.5-pro"),
        ("llama3", None),
        ("gtp-4o", None),
        ("", None),
        ("/", None),
    ],
)
def test_best__spellings_of_a_name__mean_the_nearest_row(name: str, means: str | None) -> None:
    assert _found(name) == means


def test_best__row_without_a_window__is_the_last_choice_but_for_its_own_name() -> None:
    rows = [Candidate("acme-1", "acme", has_window=False), Candidate("gmi/acme-1", "gmi", has_window=True)]
    assert lookup.best("other/acme-1", rows) == rows[1]
    assert lookup.best("acme-1", rows) == rows[0]


def test_best__every_listed_name__means_itself() -> None:
    by_key: dict[str, list[Candidate]] = {}
    entries = catalogue.read()
    for entry in entries:
        row = Candidate(entry.name, entry.provider, entry.context_window is not None)
        by_key.setdefault(lookup.key(entry.name), []).append(row)
    for entry in entries:
        best = lookup.best(entry.name, by_key[lookup.key(entry.name)])
        assert best is not None
        assert best.name == entry.name


@given(name=st.text(st.characters(), max_size=300))
def test_key__any_text__is_short_and_stays_the_same(name: str) -> None:
    key = lookup.key(name)
    assert len(key) <= lookup.MAX_NAME
    assert _found(name) in {None, *(row for row, _ in ROWS)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gtp-4o", "gpt-4o"),
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("gpt4o", "gpt-4o"),
        ("gemini-2.5-proo", "gemini-2.5-pro"),
    ],
)
def test_nearest__misspelt_name__begins_with_what_was_meant(name: str, expected: str) -> None:
    names = [entry.name for entry in catalogue.read()]
    assert lookup.nearest(name, names)[0] == expected


@given(name=st.text(st.characters(), max_size=1000))
def test_nearest__any_text__is_at_most_five_names(name: str) -> None:
    names = [row for row, _ in ROWS]
    found = lookup.nearest(name, names)
    assert len(found) <= 5
    assert set(found) <= set(names)


def test_nearest__the_whole_list__is_quick() -> None:
    names = [entry.name for entry in catalogue.read()]
    start = time.perf_counter()
    lookup.nearest("a-b-4-5 claude gpt " * 500, names)
    assert time.perf_counter() - start < 0.5
