"""Playing a transcript: append after append like an agent, each compaction ended, each context judged."""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.engine.policy import PRESETS, resolve
from compaction_service.engine.policy import limit as limits_of
from compaction_service.registry.selectors import model_get
from tenants.scope import tenant_scope
from tests.inprocess import Service
from tests.invariants import audit, chain_problems
from tests.replays.judging import Recount, coverage_problems, request_problems, size_problems
from tests.transcripts import Transcript, asks, batches

WINDOWS = (8_000, 32_000, 128_000)
POLICIES = ("default", *PRESETS)
MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5"}
GRAIN = 50  # an append has a fiftieth of the window at least: short steps go together
ROUNDING = 10  # tokens by which two ways of adding up a context may differ


@dataclass(frozen=True)
class Way:
    """How a transcript is replayed. `policy`: a preset, or "default"."""

    policy: str = "default"
    window: int = 8_000
    strategy: str | None = None
    grain: int = GRAIN

    @property
    def fields(self) -> dict[str, Any]:
        preset = {} if self.policy == "default" else {"preset": self.policy}
        return {"enabled": True, **preset, **({"strategy": self.strategy} if self.strategy else {})}


@dataclass
class Seen:
    """What there was to see, and what was wrong: each with the number of messages sent before."""

    counts: Tally[str] = field(default_factory=Tally)
    problems: list[str] = field(default_factory=list)


def replay(service: Service, told: Transcript, way: Way, *, at_once: bool = False) -> Seen:
    """Play a transcript to its end. `at_once`: all of it with the creation, and one look at what comes of it."""
    run = _Run(service, told, way)
    run.create(told.messages if at_once else [])
    if not at_once:
        for batch in batches(told.messages, way.window // way.grain):
            run.append(batch)
    run.end()
    return run.seen


class _Run:
    def __init__(self, service: Service, told: Transcript, way: Way) -> None:
        self.service, self.told, self.way = service, told, way
        self.fmt = told.format
        self.seen = Seen()
        self.stored: list[Any] = []
        self.system = told.system
        spec = model_get(MODELS[self.fmt])
        self.policy, _ = resolve([("", way.fields)])
        self.limits = limits_of(self.policy, way.window, spec.max_output)
        self.counter, self.factor = Recount(spec.counter), spec.factor
        self.path = ""

    def create(self, messages: list[Any]) -> None:
        body = {
            "model": MODELS[self.fmt],
            "format": self.fmt,
            "system": self.told.system,
            "tools": self.told.tools,
            "context_window": self.way.window,
            "policy": self.way.fields,
        }
        self.path = self.service.create(**body, **({"messages": messages} if messages else {}))
        self.seen.counts["transcripts"] += 1
        if messages:
            self._sent(messages, self.service.get(self.path))

    def append(self, batch: list[Any]) -> None:
        self._sent(batch, self.service.append(self.path, *batch))

    def _sent(self, batch: list[Any], answer: Any) -> None:
        taken = len(self.stored) + len(batch) - answer["last_position"]  # a leading system message has no position
        if taken and not self.stored:
            leading = batch[0]
            plain = leading["role"] == "system" and leading.keys() == {"role", "content"}
            self.system = leading["content"] if plain else leading
        self.stored += batch[taken:]
        self.seen.counts["messages"] += len(batch)
        self.seen.counts["appends"] += 1
        busy = answer["compaction"] is not None
        if busy:
            self.service.work_off()
        if busy or batch[-1]["role"] != "assistant":
            self.look()

    def look(self) -> None:
        """Read the context as the agent would before it calls its model, and judge it."""
        context = self.service.get(f"{self.path}/context", status=None)
        self.seen.counts["contexts"] += 1
        if "errors" in context:
            self.seen.counts["overflow"] += 1
            found = list(self._overflow_problems(context))
        else:
            self.seen.counts["degraded"] += context["degraded"]
            found = list(self._problems(context))
        self.seen.problems += [f"after {len(self.stored)}: {problem}" for problem in found]

    def _problems(self, context: Any) -> Iterator[str]:
        reserve = self.limits.reserve
        yield from size_problems(self.fmt, context, self.counter, reserve=reserve, system=self.system)
        yield from request_problems(self.fmt, context, self.stored, self.policy.keep_last_user_request)
        if not context["degraded"]:
            yield from coverage_problems(self.fmt, context, self.stored, self.system)
            return
        plan = self.service.post(f"{self.path}/compactions", {"dry_run": True}, status=200)["plan"]
        if plan["irreducible"] is None and plan["tokens"] - plan["predicted_tokens"] > self.limits.limit // 10:
            yield f"degraded, though {plan['span']} could be covered"

    def _overflow_problems(self, answer: Any) -> Iterator[str]:
        """Refused though the unanswered request would fit beside system and tools."""
        if answer["errors"][0]["code"] != "context_overflow":
            yield str(answer)
            return
        newest = self.stored[-1]
        if not asks(self.fmt, newest):
            return
        fixed = self.counter.system(self.fmt, self.system) + self.counter.tools(self.fmt, self.told.tools)
        least = self.factor * (fixed + self.counter.message(self.fmt, newest))
        if least <= self.limits.window - self.limits.reserve - ROUNDING:
            yield f"refused, though the request makes {least} tokens"

    def end(self) -> None:
        """The last context, then the log, the chain and the sums from the rows."""
        self.look()
        tenant, identifier = self.service.tenant_id, self.path.removeprefix("conversations/")
        bound = int(self.limits.bound / self.factor)
        self.seen.problems += [
            *chain_problems(tenant, identifier),
            *audit(tenant, identifier, self.counter, self.policy.summary_prefix),  # type: ignore[arg-type]
            *self._node_problems(identifier, bound),
            *self._log_problems(identifier),
        ]
        self.seen.counts["problems"] = len(self.seen.problems)

    def _node_problems(self, identifier: str, bound: int) -> Iterator[str]:
        """Summaries over their bound; active ones over the chain's, unless one is left."""
        with tenant_scope(self.service.tenant_id):
            nodes = list(Summary.objects.filter(conversation_id=identifier).values_list("text", "state"))
        sizes = [(self.counter.text(text), state) for text, state in nodes]
        yield from (f"a summary of {tokens} tokens, bound {bound}" for tokens, _ in sizes if tokens > bound)
        active = [tokens for tokens, state in sizes if state == "active"]
        most = self.policy.summary_chain_max_tokens / self.factor
        if len(active) > 1 and sum(active) > most:
            yield f"a chain of {sum(active)} tokens, bound {most}"

    def _log_problems(self, identifier: str) -> Iterator[str]:
        """Compactions that failed, made nothing smaller or covered nothing new.

        A summary may turn out not to be smaller (`skipped`), but a model is not asked for the same again.
        """
        with tenant_scope(self.service.tenant_id):
            log = list(Compaction.objects.filter(conversation_id=identifier).order_by("id"))
            calls = Tally(
                Pass.objects.filter(compaction__in=log).exclude(model="").values_list("compaction_id", flat=True)
            )
        covered, in_vain = 0, 0
        for entry in log:
            self.seen.counts[entry.outcome] += 1
            if entry.outcome == "applied":
                before, after = (sizes["tokens"] for sizes in (entry.context_before, entry.context_after) if sizes)
                if after >= before or (entry.to_position or 0) <= covered:
                    yield f"applied: {before} -> {after} tokens, covered {covered} -> {entry.to_position}"
                covered = entry.to_position or 0
            elif entry.outcome not in ("irreducible", "skipped"):
                yield f"ended {entry.outcome} ({entry.reason})"
            elif calls[entry.id]:
                if (entry.to_position or 0) <= in_vain:
                    yield f"called a model in vain again, up to {entry.to_position} as before ({entry.reason})"
                in_vain = entry.to_position or 0
        self.seen.counts["calls"] += sum(calls.values())


def large(told: Transcript, window: int) -> bool:
    """It may cross a limit on its way, and is worth an append for every step."""
    return len(json.dumps(told.messages)) > 3 * window
