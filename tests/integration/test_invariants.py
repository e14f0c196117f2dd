"""Random lives of a conversation against the real database: the invariants of semantics 1 hold after every step."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compaction_service.tokens.messages import counter_for
from tests.inprocess import Clock, Service, service_of
from tests.invariants import audit, chain_problems, context_problems
from tests.model_server import Control

WINDOW, RESERVE = 1500, 300
COUNTER = counter_for("o200k_base", 1.0)
WORDS = [
    "plan",
    "route",
    "gate",
    "fare",
    "src/app.py",
    "4711",
    "Zürich",
    "東京",
    "and",
    "the",
    "user",
    "wants",
    "to",
    "change",
    "it",
    "because",
    "nothing",
    "else",
    "works",
]
ODD = ("\x00", "\ud800", "{braces} %s %(x)d", "😀" * 30, "<|endoftext|>", "n" * 900)
IDS = ("a", "b", "c")  # few, so that they come again

texts = st.one_of(
    st.sampled_from(ODD),
    st.integers(min_value=1, max_value=120).map(lambda n: " ".join(WORDS[(n * k * k) % len(WORDS)] for k in range(n))),
)
results = st.one_of(texts, st.integers(min_value=300, max_value=2500).map(lambda n: "line of output 42\n" * (n // 5)))


class Life(RuleBasedStateMachine):
    """One conversation. `service` and `scripted` are set by the test."""

    service: Service
    scripted: Callable[[], None]

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []  # calls that wait for their result
        self.called_at = 0
        self.last = 0
        self.before: Any = None  # the context before an append
        self.problems: list[str] = []

    @initialize(mask=st.booleans(), enabled=st.booleans(), k=st.sampled_from([0, 1, 2]), last=st.booleans())
    def begin(self, mask: bool, enabled: bool, k: int, last: bool) -> None:
        policy = {
            "enabled": enabled,
            "mask_tool_results": mask,
            "mask_min_reclaim_tokens": 200,
            "keep_tool_results": 1,
            "preserve_recent_turns": k,
            "keep_last_user_request": last,
            "reserve_output_tokens": RESERVE,
        }
        self.path = self.service.create(context_window=WINDOW, system="Be brief.", policy=policy)
        self.id = self.path.removeprefix("conversations/")

    def _context(self) -> Any:
        return self.service.get(f"{self.path}/context", status=None)

    def _append(self, *messages: Any, **fields: Any) -> None:
        before = self._context()
        done = self.service.append(self.path, *messages, **fields)
        self.last = done["last_position"]
        after = self._context()
        plain = messages[0]["role"] in ("user", "assistant") and not self.open
        unmasked = "errors" not in before and before["masked"] == after.get("masked")
        if plain and unmasked and not before["degraded"] and "errors" not in after and not after["degraded"]:
            head = after["messages"][: len(before["messages"])]
            if _bytes(head) != _bytes(before["messages"]):
                self.problems.append("an append changed what came before it")

    @rule(text=texts, pinned=st.booleans())
    def user(self, text: str, pinned: bool) -> None:
        self._append({"role": "user", "content": text}, details=[{"pinned": pinned and len(text) < 200}])

    @rule(text=texts)
    def respond(self, text: str) -> None:
        self._append({"role": "assistant", "content": text})
        self.open = []

    @rule(
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True),
        tool=st.sampled_from(["bash", "read_file"]),
    )
    def call(self, ids: list[str], tool: str) -> None:
        calls = [{"id": i, "type": "function", "function": {"name": tool, "arguments": '{"x": 1}'}} for i in ids]
        self._append({"role": "assistant", "content": None, "tool_calls": calls})
        self.open, self.called_at = list(ids), self.last

    @precondition(lambda self: self.open)
    @rule(text=results, which=st.integers(min_value=0, max_value=2))
    def result(self, text: str, which: int) -> None:
        identifier = self.open[which % len(self.open)]
        self._append({"role": "tool", "tool_call_id": identifier, "content": text})
        self.open.remove(identifier)

    @precondition(lambda self: self.open)
    @rule(text=results)
    def results_all(self, text: str) -> None:
        self._append(*({"role": "tool", "tool_call_id": i, "content": text} for i in self.open))
        self.open = []

    @precondition(lambda self: self.open)
    @rule()
    def abandon(self) -> None:
        self.service.patch(f"{self.path}/messages/{self.called_at}", {"abandoned": True})
        self.open = []

    @precondition(lambda self: self.last)
    @rule(which=st.integers(min_value=0, max_value=50), pinned=st.booleans())
    def pin(self, which: int, pinned: bool) -> None:
        position = 1 + which % self.last
        self.service.patch(f"{self.path}/messages/{position}", {"pinned": pinned})

    @rule(mask=st.booleans(), keep=st.integers(min_value=0, max_value=2))
    def masking(self, mask: bool, keep: int) -> None:
        self.service.patch(self.path, {"policy": {"mask_tool_results": mask, "keep_tool_results": keep}})

    @rule()
    def work(self) -> None:
        self._compacted(self.service.work_off)

    @rule()
    def compact(self) -> None:
        self._compacted(lambda: self.service.compact(self.path))

    def _compacted(self, act: Callable[[], Any]) -> None:
        """Run; judge what was applied; and undo and redo one to see that nothing of it is left."""
        before, log = self._context(), {entry["id"] for entry in self.service.compactions(self.path)}
        live = self.service.get(self.path)["compaction"]["live"]
        act()
        new = [e for e in self.service.compactions(self.path) if e["id"] not in log or e["id"] == live]
        for entry in new:
            if entry["outcome"] is None:
                self.problems.append(f"{entry['id']} did not end")
            if entry["outcome"] == "applied" and entry["context_after"]["tokens"] >= entry["context_before"]["tokens"]:
                self.problems.append("applied, and not smaller")
            if entry["outcome"] == "irreducible" and entry["llm_tokens_in"]:
                self.problems.append("irreducible, and a model was called")
        applied = [entry for entry in new if entry["outcome"] == "applied"]
        if len(applied) == 1 and "errors" not in before:
            self.service.post(f"compactions/{applied[0]['id']}/revert", status=200)
            after = self._context()
            if "errors" in after or _bytes(after["messages"]) != _bytes(before["messages"]):
                self.problems.append("compact and revert left another context")
            self.service.compact(self.path)

    @rule()
    def revert(self) -> None:
        self.service.work_off()
        applied = [e for e in self.service.compactions(self.path) if e["outcome"] == "applied" and not e["reverted_at"]]
        if applied:
            self.service.post(f"compactions/{applied[-1]['id']}/revert", status=200)
            if len(applied) > 1:
                self.service.post(f"compactions/{applied[0]['id']}/revert", status=200 if len(applied) == 2 else 409)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "path"):
            return
        found = [*self.problems, *audit(self.service.tenant_id, self.id, COUNTER)]
        found += chain_problems(self.service.tenant_id, self.id)
        context, again = self._context(), self._context()
        if context != again and "errors" not in context:
            found.append("reading changed the context")
        if "errors" in context:
            assert context["errors"][0]["code"] == "context_overflow", context
        else:
            found += context_problems(context, COUNTER, reserve=RESERVE, system="Be brief.")
        assert found == []


def _bytes(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def live(
    make_tenant: Callable[[], Any], clock: Clock, models: Control, *, examples: int, steps: int, model: bool
) -> None:
    """Run the machine with a tenant of its own for each life."""

    class Run(Life):
        def __init__(self) -> None:
            super().__init__()
            self.service = service_of(make_tenant(), clock)
            if model:
                self.service.summarizer(models, f"life-{uuid.uuid4().hex}")

        def teardown(self) -> None:
            self.service.work_off()

    run_state_machine_as_test(
        Run,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


@pytest.mark.parametrize("model", [False, True], ids=["extractive", "model"])
def test_conversation__random_life__keeps_every_invariant(
    make_tenant: Callable[[], Any], clock: Clock, models: Control, model: bool
) -> None:
    live(make_tenant, clock, models, examples=6 if model else 10, steps=20, model=model)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("model", [False, True], ids=["extractive", "model"])
def test_conversation__many_long_lives__keep_every_invariant(
    make_tenant: Callable[[], Any], clock: Clock, models: Control, model: bool
) -> None:
    live(make_tenant, clock, models, examples=150, steps=60, model=model)
