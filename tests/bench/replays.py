"""What a tenant pays and keeps: 10,000 messages replayed over HTTP with a scripted summariser (targets, "Replay
workloads"): after every completed response append, let the compaction finish, read the context."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psutil  # type: ignore[import-untyped]

from compaction_service.tokens.messages import counter_for
from tests.bench.figures import INFORMATION, Figure, Figures, rounded
from tests.bench.requests import KILOBYTE
from tests.bench.service import Bench, Client
from tests.model_server.control import spawned
from tests.model_server.honest import prompt_texts
from tests.transcripts import transcript
from tests.unit.engine.context_rules import openai_violations

WINDOW, RESERVE = 32_000, 4096
POLICY = {
    "enabled": True, "threshold": 0.8, "preserve_recent_turns": 2, "target": 0, "summary_max_tokens": 4096,
    "reserve_output_tokens": RESERVE,
}  # fmt: skip
SUMMARISER, SUMMARY = "gpt-4o-mini", "fixed_tokens:800"  # a scripted model, with the window of this one
PEERS_CALLS = 38  # the fewest of any peer that drops nothing unread, on `agent` (9,992 messages)
COUNTER = counter_for("o200k_base", 1.0)


@dataclass
class Seen:
    """What a replay added up. Tokens are raw o200k tokens."""

    turns: int = 0
    handed_out: int = 0
    kept: int = 0  # of it: unchanged from the context before, or just appended
    degraded: int = 0
    violations: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def look(self, context: Any, appended: int) -> None:
        """One context, read after `appended` new messages."""
        messages = context["messages"]
        texts = [json.dumps(message, sort_keys=True) for message in messages]
        tokens = [COUNTER.message("openai", message) for message in messages]
        same = 0
        while same < min(len(texts), len(self.before)) and texts[same] == self.before[same]:
            same += 1
        fresh = min(appended, len(texts) - same)
        self.turns += 1
        self.handed_out += sum(tokens)
        self.kept += sum(tokens[:same]) + sum(tokens[len(tokens) - fresh :])
        self.degraded += context["degraded"]
        self.before = texts
        self.violations += openai_violations(messages)
        if sum(tokens) > WINDOW - RESERVE:
            self.violations.append(f"{sum(tokens)} tokens after turn {self.turns}")


def repeated(name: str, length: int) -> list[Any]:
    """So many messages of a source's conversations one after another, again and again, call ids made unique."""
    messages = transcript(name).messages
    found: list[Any] = []
    for round_ in count():
        text = json.dumps(messages).replace('"call_', f'"call_{round_}_')
        found += json.loads(text)
        if len(found) >= length:
            return found[:length]
    raise AssertionError("count() does not end")


def turns(messages: list[Any]) -> Iterator[list[Any]]:
    """Batches that end with an assistant message which completes a response."""
    batch: list[Any] = []
    for message in messages:
        batch.append(message)
        if message["role"] == "assistant" and not message.get("tool_calls"):
            yield batch
            batch = []


def agent(bench: Bench) -> Figures:
    """Conversations with tools. Measured with masking, our default."""
    return _replayed(bench, "agent", "tau_bench", 0.985)


def chat(bench: Bench) -> Figures:
    """Conversations without tools."""
    return _replayed(bench, "chat", "locomo", 0.995)


def _replayed(bench: Bench, workload: str, source: str, stable: float) -> Figures:
    messages, seen = repeated(source, bench.replayed), Seen()
    with spawned() as models, bench.web() as web, closing(Client(web.port, bench.key)) as client:
        model = models.script(SUMMARISER, SUMMARY)
        given = {"model": model, "api_base": models.base_url, "api_key": models.key}
        client.call("PATCH", "tenant", {"summarizer": given})
        path = client.create(context_window=WINDOW, policy=POLICY)
        client.append(path, {"role": "user", "content": KILOBYTE})  # what the system prompt of a record would be
        worker = psutil.Process(bench.stack.services["worker"].popen.pid)
        cpu = web.cpu_s() + _cpu_s(worker)
        for batch in turns(messages):
            client.append(path, *batch)
            seen.look(client.call("GET", f"{path}/context?wait=60&wait_for=idle"), len(batch))
        cpu = web.cpu_s() + _cpu_s(worker) - cpu
        stats = client.call("GET", f"{path}/stats")
        calls = [prompt_texts(call["body"]) for call in models.calls(model)]
        client.call("PATCH", "tenant", {"summarizer": {"model": None}})
    total = sum(COUNTER.message("openai", message) for message in messages)
    sent = sum(COUNTER.text(text) for texts in calls for text in texts)
    detail = {
        "workload": workload, "messages": len(messages), "turns": seen.turns, "tokens": total, "calls": len(calls),
        "compactions": stats.get("compactions"), "handed_out": seen.handed_out,
    }  # fmt: skip
    mine = {
        "sent_ratio": Figure(rounded(sent / total), "ratio", "<= 1.1", detail),
        "prefix_stable": Figure(rounded(seen.kept / seen.handed_out, 4), "share", f">= {stable}", detail),
        "degraded_share": Figure(seen.degraded / seen.turns, "share", "= 0", detail),
        "violations": Figure(len(seen.violations), "count", "= 0", {**detail, "first": seen.violations[:5]}),
        "turn_cpu_ms": Figure(rounded(cpu / seen.turns * 1000), "ms a turn", INFORMATION, detail),
    }
    made = {f"{name}_{workload}": figure for name, figure in mine.items()}
    if workload == "agent":
        made["calls_ratio"] = Figure(rounded(len(calls) / PEERS_CALLS), "ratio", "<= 0.7", detail)
    return made


def _cpu_s(process: Any) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
