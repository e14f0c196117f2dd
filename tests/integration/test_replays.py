"""Real transcripts through the whole service: every context on the way is read and judged from the outside.

The selection of every day goes through each file, format, preset and window, and each odd record; `make test-slow`
replays all of it (docs/transcripts.md).
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests import transcripts
from tests.inprocess import Service
from tests.model_server import Control
from tests.replays.playing import POLICIES, WINDOWS, Seen, Way, large, replay
from tests.replays.table import Table
from tests.transcripts import Transcript, conversations, transcript

ANTHROPIC = ("llm_anthropic_cassettes", "pi_mono", "pydantic_cassettes")
OPENAI = (
    "aider", "crosswoz_zh", "hh_rlhf", "intercode", "locomo", "mtbench101", "openhands", "pydantic_cassettes",
    "real_persona_chat_ja", "swe_agent", "tau_bench", "toolbench", "webdancer", "woz_de_it",
)  # fmt: skip
SOURCES = (*((name, "anthropic") for name in ANTHROPIC), *((name, "openai") for name in OPENAI))
FILES = sorted({name for name, _ in SOURCES})
SHORT = 100  # messages of a source that the selection replays
SEED, DRAWN = "REPLAY_SEED", "REPLAYS"  # environment: another draw, and a longer one


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Without an access line for each of very many requests."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Iterator[Table]:
    """Printed where a test that ran adds to it."""
    made = Table()
    yield made
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n" + "\n".join(made.lines()))  # noqa: T201


def held(seen: Seen) -> Seen:
    assert seen.problems == []
    return seen


# --- every day -------------------------------------------------------------------------------------------------------


def test_sources__of_the_folder__are_all_replayed() -> None:
    if not transcripts.FOLDER.is_dir():
        pytest.skip("no transcripts")
    there = {(name, fmt) for name in transcripts.sources() for fmt in transcripts.formats_of(name)}
    assert there == set(SOURCES)


@pytest.mark.parametrize("source", SOURCES, ids="-".join)
def test_replay__of_each_source__every_context_is_valid_and_bounded(service: Service, source: tuple[str, str]) -> None:
    told = transcript(source[0], SHORT, source[1])
    held(replay(service, told, Way(POLICIES[SOURCES.index(source) % len(POLICIES)])))


# For each window and format: what fills it with few messages.
FILLING = {
    (8_000, "openai"): ("toolbench", 109),
    (32_000, "openai"): ("swe_agent", 120),
    (128_000, "openai"): ("intercode", 110),
    **{(window, "anthropic"): ("pydantic_cassettes", 60) for window in WINDOWS},
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("window", "fmt"), FILLING)
def test_replay__under_each_policy_and_window__every_context_is_valid_and_bounded(
    service: Service, policy: str, window: int, fmt: str
) -> None:
    name, most = FILLING[window, fmt]
    assert held(replay(service, transcript(name, most, fmt), Way(policy, window))).counts["applied"] > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_replay__shipped_transcript_and_a_model__few_calls_and_nothing_degraded(
    service: Service, models: Control, model: str, policy: str
) -> None:
    service.summarizer(models, model)
    counts = held(replay(service, transcript("airline", 70), Way(policy, 6_000))).counts
    assert counts["applied"] >= 1
    assert counts["degraded"] == 0
    assert counts["calls"] <= counts["contexts"] // 2, counts


@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
def test_replay__other_strategy__every_context_is_valid_and_bounded(service: Service, strategy: str) -> None:
    told = transcript("swe_agent", SHORT)
    assert held(replay(service, told, Way(strategy=strategy))).counts["applied"] > 6


@pytest.mark.parametrize("number", range(int(os.environ.get(DRAWN, "6"))))
def test_replay__drawn_by_seed__every_context_is_valid_and_bounded(
    service: Service, models: Control, model: str, number: int
) -> None:
    draw = random.Random(f"{os.environ.get(SEED, '1')}-{number}")  # noqa: S311 -- chosen, not secret
    name = draw.choice(transcripts.sources())
    whole = transcript(name, None, draw.choice(transcripts.formats_of(name)))
    begin = draw.choice([i for i, one in enumerate(whole.messages) if transcripts.asks(whole.format, one)])
    told = Transcript(
        whole.system, whole.tools, whole.messages[begin : begin + draw.randint(20, 150)], name, whole.format
    )
    window = draw.choice([w for w in (3_000, *WINDOWS) if w > needed(told)])
    way = Way(
        draw.choice(POLICIES), window, draw.choice([None, "hierarchical", "hybrid"]), draw.choice([10, 100, 1_000])
    )
    if draw.random() < 0.5:
        service.summarizer(models, model)
    seen = replay(service, told, way)
    assert seen.problems == [], (way, name, begin, len(told.messages))


def needed(told: Transcript) -> int:
    """A window that holds system and tools at least."""
    return 500 + len(str([told.system, told.tools])) // 2


# --- odd records -----------------------------------------------------------------------------------------------------

ACCEPTED = (
    "pi-large-session-stored",
    "pydantic-ai/anthropic/test_anthropic_fable_5_lazy_advertisement_live",
    "pydantic-ai/anthropic/test_anthropic_lazy_advertisement_live",
)
RESPONSES = "pydantic-ai/openai_responses/test_openai_"
# Where each is refused, its tools set aside, and with which code.
REFUSED = {
    "pydantic-ai/multimodal_tool_returns/test_mixed_content_ordering[openai_responses]": ("required", 1, "role"),
    "pydantic-ai/multimodal_tool_returns/test_model_sees_multiple_images[openai_responses]": ("required", 1, "role"),
    f"{RESPONSES}conversation_id_tool_call_continuation#2": ("tool_result_without_call", 0, "tool_call_id"),
    f"{RESPONSES}responses_compact_messages#2": ("required", 0, "role"),
    f"{RESPONSES}responses_compact_stateful_mode": ("required", 6, "role"),
    f"{RESPONSES}responses_compact_stateful_mode_stream": ("required", 6, "role"),
    f"{RESPONSES}responses_compact_with_auto_previous_response_id_chain#3": ("required", 0, "role"),
    f"{RESPONSES}responses_compact_with_auto_previous_response_id_chain#4": ("required", 0, "role"),
    f"{RESPONSES}responses_compact_with_auto_previous_response_id_chain#5": ("required", 0, "role"),
    f"{RESPONSES}responses_image_generation_with_tool_output": ("required", 1, "role"),
    f"{RESPONSES}responses_model_file_search_tool": ("required", 3, "role"),
    f"{RESPONSES}responses_model_file_search_tool_with_results": ("required", 1, "role"),
    f"{RESPONSES}responses_model_mcp_server_tool": ("required", 1, "role"),
    f"{RESPONSES}responses_model_mcp_server_tool_with_connector": ("required", 1, "role"),
    f"{RESPONSES}responses_thinking_with_code_execution_tool": ("required", 1, "role"),
}
# Tools of the Responses API: theirs have no `function`.
TOOLS_REFUSED = {
    "pydantic-ai/multimodal_tool_returns/test_mixed_content_ordering[openai_responses]": "tools.0.function",
    "pydantic-ai/multimodal_tool_returns/test_model_sees_multiple_images[openai_responses]": "tools.0.function",
    f"{RESPONSES}responses_image_generation_with_tool_output": "tools.1.function",
}


def odd(id_: str) -> Transcript:
    return next(one for one in conversations(transcripts.ODD) if one.id == id_)


def test_odd_records__of_the_file__are_all_told() -> None:
    assert {one.id for one in conversations(transcripts.ODD)} == {*ACCEPTED, *REFUSED}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("id_", ACCEPTED)
def test_odd_record__accepted__is_made_valid(service: Service, id_: str, window: int) -> None:
    told = odd(id_)
    held(replay(service, told, Way(window=window), at_once=True))
    if window == min(WINDOWS):
        held(replay(service, replace(told, messages=told.messages[:60]), Way(window=window)))


@pytest.mark.parametrize("id_", REFUSED)
def test_odd_record__refused__names_the_place_and_stores_nothing_of_it(service: Service, id_: str) -> None:
    told, (code, index, key) = odd(id_), REFUSED[id_]
    body: dict[str, Any] = {"model": "gpt-4o", "system": told.system, "tools": told.tools}
    (error,) = service.post("conversations", {**body, "messages": told.messages}, status=400)["errors"]
    assert error["attr"] == TOOLS_REFUSED.get(id_, f"messages.{index}.{key}")

    path = service.create(system=told.system)
    (error,) = service.post(f"{path}/messages", {"messages": told.messages}, status=400)["errors"]
    assert (error["code"], error["attr"]) == (code, f"messages.{index}.{key}")
    assert service.get(path)["last_position"] == 0
    if index:
        held(replay(service, Transcript(told.system, None, told.messages[:index]), Way(window=32_000)))


# --- all of it -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("source", SOURCES, ids="-".join)
def test_replay__whole_source_as_one_conversation__every_context_is_valid_and_bounded(
    service: Service, table: Table, source: tuple[str, str], policy: str, window: int
) -> None:
    way = Way(policy, window)
    seen = replay(service, transcript(source[0], None, source[1]), way)
    table.add(f"{source[0]} ({source[1]}), joined", way, seen)
    held(seen)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [*FILES, transcripts.ODD])
def test_replay__each_transcript_by_itself__every_context_is_valid_and_bounded(
    service: Service, table: Table, name: str, policy: str, window: int
) -> None:
    way = Way(policy, window)
    problems = []
    for told in conversations(name):
        if told.id in REFUSED:
            continue
        seen = replay(service, told, way, at_once=not large(told, window))
        table.add(f"{name}, each", way, seen)
        problems += [f"{told.id}: {problem}" for problem in seen.problems]
    assert problems == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strategy", ["sliding", "hierarchical", "hybrid"])
@pytest.mark.parametrize("source", SOURCES, ids="-".join)
def test_replay__whole_source_with_a_model__every_context_is_valid_and_bounded(
    service: Service, models: Control, model: str, table: Table, source: tuple[str, str], strategy: str
) -> None:
    service.summarizer(models, model)
    way = Way(strategy=strategy)
    seen = replay(service, transcript(source[0], None, source[1]), way)
    table.add(f"{source[0]} ({source[1]}), model", way, seen)
    held(seen)
