"""Random lives of a conversation against the real database: the invariants of semantics 1 hold after every step.

Both formats: parallel, reused, open and abandoned calls, media, thinking; append, pin, mask, compact, revert, erase,
rewind, fork, and changes of system and model.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.retokenizing import conversation_recount
from compaction_service.registry.selectors import model_get
from tenants.scope import tenant_scope
from tests.inprocess import Clock, Service, service_of
from tests.integration.lives import IDS, SPEAKERS, TOOLS, Speaker, results, shapes, texts
from tests.invariants import audit, chain_problems, context_problems
from tests.model_server import Control
from tests.unit.engine.strategies_anthropic import flat

WINDOW, RESERVE = 1500, 300
SYSTEMS = ("Be brief.", "Be kind.")


class Life(RuleBasedStateMachine):
    """One conversation. The rest is set by the test."""

    service: Service
    format: str
    speaker: Speaker
    use_model: Callable[[], None]

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.forked = False
        self.waiting: list[str] = []  # calls that wait for their result
        self.interrupted = False  # something that is no result followed them
        self.called_at = self.last = 0

    @initialize(
        mask=st.booleans(),
        enabled=st.booleans(),
        k=st.sampled_from([0, 1, 2]),
        last=st.booleans(),
        model=st.booleans(),
        name=st.integers(0, 1),
    )
    def begin(self, mask: bool, enabled: bool, k: int, last: bool, model: bool, name: int) -> None:
        policy = {
            "enabled": enabled,
            "mask_tool_results": mask,
            "mask_min_reclaim_tokens": 200,
            "keep_tool_results": 1,
            "preserve_recent_turns": k,
            "keep_last_user_request": last,
            "reserve_output_tokens": RESERVE,
        }
        if model:
            self.use_model()
        self.system = SYSTEMS[0]
        self.path = self.service.create(
            context_window=WINDOW,
            system=self.system,
            policy=policy,
            format=self.format,
            model=self.speaker.models[name],
        )

    @property
    def id(self) -> str:
        return self.path.removeprefix("conversations/")

    def position(self, which: int) -> int:
        """One that was handed out, 0 without any."""
        return 1 + which % self.last if self.last else 0

    def _context(self) -> Any:
        return self.service.get(f"{self.path}/context", status=None)

    def _append(self, *messages: Any, **fields: Any) -> None:
        before = self._context()
        self.service.append(self.path, *messages, **fields)
        after = self._context()
        if "errors" in before or "errors" in after or before["degraded"] or after["degraded"]:
            return
        # A masking step, and a result behind other messages, may change what was shown (invariant 6).
        if not self.interrupted and before["masked"] == after["masked"]:
            old, new = before["messages"], after["messages"]
            if self.format == "anthropic":
                old, new = flat(old), flat(new)
            if _bytes(new[: len(old)]) != _bytes(old):
                self.problems.append("an append changed what came before it")

    @rule(said=texts, shape=shapes, pinned=st.booleans())
    def user(self, said: str, shape: int, pinned: bool) -> None:
        self._append(self.speaker.asks(said, shape), details=[{"pinned": pinned and len(said) < 200}])

    @rule(said=texts, shape=shapes)
    def respond(self, said: str, shape: int) -> None:
        self._append(self.speaker.answers(said, shape))

    @rule(
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True),
        tool=st.sampled_from(TOOLS),
        shape=shapes,
    )
    def call(self, ids: list[str], tool: str, shape: int) -> None:
        self._append(self.speaker.calls(ids, tool, shape))

    @precondition(lambda self: self.waiting)
    @rule(said=results, shape=shapes, which=st.integers(min_value=0, max_value=2))
    def result(self, said: str, shape: int, which: int) -> None:
        self._append(*self.speaker.returns([self.waiting[which % len(self.waiting)]], said, shape))

    @precondition(lambda self: self.waiting)
    @rule(said=results, shape=shapes)
    def results_all(self, said: str, shape: int) -> None:
        self._append(*self.speaker.returns(self.waiting, said, shape))

    @precondition(lambda self: self.waiting)
    @rule()
    def abandon(self) -> None:
        position = self.called_at
        # Of an erased message there is nothing left to mark.
        answer = self.service.patch(f"{self.path}/messages/{position}", {"abandoned": True}, status=None)
        assert "errors" not in answer or answer["errors"][0]["code"] == "not_found", answer

    @rule(which=st.integers(min_value=0, max_value=50), pinned=st.booleans())
    def pin(self, which: int, pinned: bool) -> None:
        answer = self.service.patch(f"{self.path}/messages/{self.position(which)}", {"pinned": pinned}, status=None)
        assert "errors" not in answer or answer["errors"][0]["code"] == "not_found", answer

    @rule(which=st.integers(min_value=0, max_value=50))
    def erase(self, which: int) -> None:
        answer = self.service.call("DELETE", f"{self.path}/messages/{self.position(which)}", status=None)
        assert "errors" not in answer or answer["errors"][0]["code"] == "not_found", answer

    @rule(back=st.integers(min_value=0, max_value=6))
    def rewind(self, back: int) -> None:
        if self.last:
            self.service.call("DELETE", f"{self.path}/messages?from={max(1, self.last - back)}")

    @rule(back=st.integers(min_value=0, max_value=6))
    def fork(self, back: int) -> None:
        """The life goes on in the fork."""
        self.service.work_off()
        if self.last:
            before = self._context()
            made = self.service.post(f"{self.path}/fork", {"position": max(1, self.last - back)})
            self.path, self.forked = f"conversations/{made['id']}", True
            if back == 0 and _bytes(self._context().get("messages")) != _bytes(before.get("messages")):
                self.problems.append("a fork of the whole shows something else")

    @rule(mask=st.booleans(), keep=st.integers(min_value=0, max_value=2))
    def masking(self, mask: bool, keep: int) -> None:
        self.service.patch(self.path, {"policy": {"mask_tool_results": mask, "keep_tool_results": keep}})

    @rule(system=st.sampled_from(SYSTEMS), model=st.integers(0, 1))
    def change(self, system: str, model: int) -> None:
        self.system = system
        self.service.patch(self.path, {"system": system, "model": self.speaker.models[model]})
        assert conversation_recount(self.service.tenant_id, uuid.UUID(self.id))

    @rule()
    def work(self) -> None:
        self._compacted(self.service.work_off)

    @rule()
    def compact(self) -> None:
        self._compacted(lambda: self.service.compact(self.path))

    @rule(which=st.integers(min_value=0, max_value=50))
    def compact_up_to(self, which: int) -> None:
        if position := self.position(which):
            self._compacted(lambda: self.service.compact(self.path, up_to=position))

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
            answer = self.service.post(f"compactions/{applied[-1]['id']}/revert", status=None)
            if "errors" in answer:  # an erasure took its summary
                assert answer["errors"][0]["code"] == "summary_stale", answer
            elif len(applied) > 2:
                self.service.post(f"compactions/{applied[0]['id']}/revert", status=409)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "path"):
            return
        with tenant_scope(self.service.tenant_id):
            row = Conversation.objects.get(id=self.id)
            counter = model_get(row.model).counter
        self.last, self.interrupted = row.last_position, row.ledger["interrupted"]
        self.waiting = [call["id"] for call in row.ledger["open_calls"]]
        self.called_at = max((call["position"] for call in row.ledger["open_calls"]), default=0)
        found = [*self.problems, *audit(self.service.tenant_id, self.id, counter)]
        found += chain_problems(self.service.tenant_id, self.id, forked=self.forked)
        context, again = self._context(), self._context()
        if context != again and "errors" not in context:
            found.append("reading changed the context")
        if "errors" in context:
            assert context["errors"][0]["code"] == "context_overflow", context
        else:
            found += context_problems(context, counter, reserve=RESERVE, system=self.system, format=self.format)
        assert found == []


def _bytes(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def live(
    make_tenant: Callable[[], Any],
    clock: Clock,
    models: Control,
    name: str,
    *,
    examples: int,
    steps: int,
) -> None:
    """Run the machine with a tenant of its own for each life."""

    class Run(Life):
        def __init__(self) -> None:
            super().__init__()
            self.format, self.speaker = name, SPEAKERS[name]
            self.service = service_of(make_tenant(), clock)

        def use_model(self) -> None:
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
            phases=(Phase.explicit, Phase.reuse, Phase.generate),  # making it smaller takes too long here
            print_blob=True,
        ),
    )


@pytest.mark.parametrize("name", list(SPEAKERS))
def test_conversation__random_life__keeps_every_invariant(
    make_tenant: Callable[[], Any],
    clock: Clock,
    models: Control,
    name: str,
) -> None:
    live(make_tenant, clock, models, name, examples=6, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", list(SPEAKERS))
def test_conversation__many_long_lives__keep_every_invariant(
    make_tenant: Callable[[], Any],
    clock: Clock,
    models: Control,
    name: str,
) -> None:
    live(make_tenant, clock, models, name, examples=200, steps=60)
