"""Every cell of the failure matrix: what a model answers, at which compaction, under which strategy.

The expected outcomes are those of docs/summaries.md, read from its table: page and code cannot part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings

from compaction_service.tokens.messages import counter_for
from tests.conftest import Member
from tests.inprocess import Clock, Service, service_of
from tests.invariants import audit, chain_problems
from tests.model_server import Control
from tests.unit.docs.pages import ROOT, code, rows

COUNTER = counter_for("o200k_base", 1.0)
STRATEGIES = ("sliding", "hierarchical")
BOUND = 150  # of the summaries that are shortened


@dataclass(frozen=True)
class Expected:
    """A row of the table. `calls`: of a pass that reads messages, and of one that reads summaries."""

    behaviour: str
    method: str
    reason: str | None
    calls: tuple[int, int]
    charged: str  # "told" by the provider, "counted" by us, "nothing"


def _row(cells: list[str]) -> Expected:
    what, method, reason, calls, charged = cells
    numbers = [int(number) for number in re.findall(r"\d+", calls)]
    behaviour = what.split("`")[-2]
    return Expected(behaviour, code(method), code(reason) if reason else None, (numbers[0], numbers[-1]), charged)


TABLE = [_row(cells) for cells in rows(ROOT / "docs/summaries.md", first="the model")]
# Where a behaviour can meet a compaction. Each behaviour is tried in one of them by `make test`, in all by test-slow.
PLACES = [*(f"{place} {strategy}" for place in ("first", "sixth") for strategy in STRATEGIES)]
PLACES += ["merge", "shortening", "no fallback"]


def cells(place: str) -> list[Any]:
    """The behaviours in a place; some are of interest with those that fail only."""
    failing = place in ("merge", "shortening", "no fallback")
    return [
        pytest.param(
            row,
            *([] if failing else [place.partition(" ")[2]]),
            id=f"{row.behaviour}-{place}",
            marks=() if number % len(PLACES) == PLACES.index(place) else pytest.mark.slow,
        )
        for number, row in enumerate(TABLE)
        if row.reason or not failing
    ]


FIRST, SIXTH = (
    [cell for strategy in STRATEGIES for cell in cells(f"{when} {strategy}")] for when in ("first", "sixth")
)


def turn(number: int) -> list[dict[str, Any]]:
    ask = f"Request {number}: mend src/module_{number}.py, it fails with error E{number} and the user waits for it. "
    did = f"I mended src/module_{number}.py: the cause was a missing value, and the test_{number} is green again. "
    return [{"role": "user", "content": ask * 10}, {"role": "assistant", "content": did * 10}]


def start(service: Service, strategy: str, **policy: Any) -> str:
    path = service.create(policy={"strategy": strategy, "target": 0, **policy})
    service.append(path, *turn(0), *turn(1), *turn(2))
    return path


# One tenant and, for each strategy, one conversation after five compactions. A cell adds the sixth and takes it back.
_prepared: dict[str, Any] = {}


@pytest.fixture
def fifth(make_tenant: Any, clock: Clock) -> Iterator[Any]:
    """Gives the service and a conversation of five applied compactions, by strategy; they are left as they were."""
    if "tenant" not in _prepared:
        _prepared["tenant"] = make_tenant()
    member: Member = _prepared["tenant"]
    service = service_of(member, clock)
    used: list[str] = []

    def give(strategy: str) -> tuple[Service, str]:
        path = _prepared.pop(strategy, None) or _after_five(service, strategy)
        used.extend((strategy, path))
        return service, path

    yield give
    strategy, path = used
    newest = service.compactions(path)[-1]
    if newest["status"] in ("succeeded", "failed"):  # else it is not used again
        if newest["outcome"] == "applied":
            service.post(f"compactions/{newest['id']}/revert", status=200)
        _prepared[strategy] = path


def _after_five(service: Service, strategy: str) -> str:
    service.no_summarizer()
    path = start(service, strategy)
    for number in range(5):
        assert service.compact(path)["outcome"] == "applied"
        service.append(path, *turn(2 * number + 3), *turn(2 * number + 4))
    return path


def check(service: Service, path: str, entry: Any, wanted: Expected, *, good_calls: int, reading: bool) -> None:
    """The entry, the ledger and the chain are as the table says. `good_calls`: calls before the failing ones."""
    calls = service.calls(entry["id"])
    assert (entry["outcome"], entry["fallback_reason"]) == ("applied", wanted.reason), entry["passes"]
    assert len(calls) == good_calls + wanted.calls[0 if reading else 1]
    failed = [call for call in calls[good_calls:] if call.status == "failed"]
    if wanted.reason:
        assert [call.error for call in failed] == [wanted.reason] * wanted.calls[0 if reading else 1]
        charged = all(call.tokens_in > 0 for call in failed)
        assert charged == (wanted.charged != "nothing")
    assert entry["llm_tokens_in"] == sum(call.tokens_in for call in calls)
    assert entry["llm_tokens_out"] == sum(call.tokens_out for call in calls)
    assert entry["context_after"]["tokens"] < entry["context_before"]["tokens"]
    assert "\x00" not in entry["summary"]
    context = service.context(path)
    assert context["fits"]
    identifier = path.removeprefix("conversations/")
    assert chain_problems(service.tenant_id, identifier) == []
    assert audit(service.tenant_id, identifier, COUNTER) == []


def impatient(monkeypatch: pytest.MonkeyPatch, wanted: Expected) -> None:
    """A hanging call waits long, and longer than calls are tried again for: both in less time, in proportion."""
    if wanted.reason == "timeout":
        shorter = 0.3 / settings.MODEL_CALL_TIMEOUT
        monkeypatch.setattr(settings, "MODEL_RETRY_SECONDS", settings.MODEL_RETRY_SECONDS * shorter)
        monkeypatch.setattr(settings, "MODEL_CALL_TIMEOUT", 0.3)


@pytest.mark.parametrize(("wanted", "strategy"), FIRST)
def test_matrix__first_compaction__is_as_the_page_says(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, wanted: Expected, strategy: str
) -> None:
    impatient(monkeypatch, wanted)
    service.summarizer(models, models.script(model, wanted.behaviour))
    path = start(service, strategy)
    entry = service.compact(path)
    check(service, path, entry, wanted, good_calls=0, reading=True)
    assert entry["method"] == wanted.method


@pytest.mark.parametrize(("wanted", "strategy"), SIXTH)
def test_matrix__sixth_compaction__is_as_the_page_says(
    fifth: Any, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, wanted: Expected, strategy: str
) -> None:
    impatient(monkeypatch, wanted)
    service, path = fifth(strategy)
    service.summarizer(models, models.script(model, wanted.behaviour))
    entry = service.compact(path)
    merges = strategy == "hierarchical"
    good = 1 if merges and not wanted.reason else 0  # the merge's own call
    check(service, path, entry, wanted, good_calls=good, reading=True)
    assert entry["method"] == wanted.method
    assert [one["kind"] for one in entry["passes"]][-1] == ("merge" if merges else "summary")
    active = service.get(f"{path}/summaries?state=active")["data"]
    assert [node["level"] for node in active] == [1 if merges else 0]


@pytest.mark.parametrize("wanted", cells("merge"))
def test_matrix__merge_of_the_sixth__is_cut_and_the_summary_before_it_stays(
    fifth: Any, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, wanted: Expected
) -> None:
    impatient(monkeypatch, wanted)
    service, path = fifth("hierarchical")
    service.summarizer(models, models.script(model, ["honest", wanted.behaviour]))
    entry = service.compact(path)
    check(service, path, entry, wanted, good_calls=1, reading=False)
    assert entry["method"] == "llm"
    assert [one["kind"] for one in entry["passes"]] == ["summary", "merge", "merge"]
    assert any("cut_from_tokens" in note for note in entry["notes"])
    (node,) = service.get(f"{path}/summaries?state=active")["data"]
    assert (node["level"], node["method"], len(node["children"])) == (1, "extractive", 6)


@pytest.mark.parametrize("wanted", cells("shortening"))
def test_matrix__shortening_pass__is_cut_to_the_bound(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, wanted: Expected
) -> None:
    impatient(monkeypatch, wanted)
    service.summarizer(models, models.script(model, ["fixed_tokens:220", wanted.behaviour]))
    path = start(service, "sliding", summary_max_tokens=BOUND)
    entry = service.compact(path)
    check(service, path, entry, wanted, good_calls=1, reading=False)
    assert entry["method"] == "llm"
    assert [one["kind"] for one in entry["passes"]] == ["summary", "resummarize", "resummarize"]
    assert any("cut_from_tokens" in note for note in entry["notes"])
    assert 0 < COUNTER.text(entry["summary"]) <= BOUND


@pytest.mark.parametrize("wanted", cells("no fallback"))
def test_matrix__no_fallback_allowed__fails_and_changes_nothing(
    service: Service, models: Control, model: str, monkeypatch: pytest.MonkeyPatch, wanted: Expected
) -> None:
    impatient(monkeypatch, wanted)
    service.summarizer(models, models.script(model, wanted.behaviour))
    path = start(service, "sliding", extractive_fallback=False)
    before = service.context(path)
    entry = service.compact(path)
    assert (entry["status"], entry["outcome"], entry["reason"]) == ("failed", "failed", wanted.reason)
    assert len(service.calls(entry["id"])) == wanted.calls[0]
    after = service.context(path)
    assert (after["messages"], after["covered"], after["meter"]) == (before["messages"], None, before["meter"])


def test_matrix__behaviours_of_the_scripted_model__are_all_in_the_table() -> None:
    from tests.model_server import behaviours

    told = {row.behaviour.partition(":")[0] for row in TABLE}
    good = {"honest", "fixed_tokens", "long_then_short", "slow", "held", "say"}
    elsewhere = {*good, "drip", "compressed", "key_echo", "roles"}
    assert told | elsewhere == set(behaviours._NAMES)
