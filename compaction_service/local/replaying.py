"""Playing a recorded conversation against a running service, as the agent product would that had it.

Before each response of the model the context is read, and checked; then the recorded response is appended as if the
model had just given it, and the results of its calls after it. Only the public API is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction_service.local.api_client import Api
from compaction_service.local.transcripts import JSON, Transcript
from compaction_service.local.validity import asks, context_problems

WAIT_S = 60  # the longest the API lets a context wait for its compaction
PATIENCE_S = 180  # for a compaction to end before a degraded context is taken: a worker may only be starting
PAUSE_S = 1
USUAL_MODEL = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5"}  # where neither caller nor record names one
ENABLED = {"enabled": True}  # automatic compaction is opt-in


@dataclass(frozen=True)
class Options:
    """How to replay. None: what the transcript or the service has. `limit`: so many messages at most."""

    model: str | None = None
    window: int | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None


@dataclass(frozen=True)
class Reading:
    """One context, read before a response of the model. Tokens are by the API's own count.

    `tokens_without`: system, tools and every message so far, what an agent without the service would send.
    `compaction`: the live one, whose summary this context does not have yet. `waited_s`: how long the answer took.
    """

    turn: int
    position: int
    tokens: int
    tokens_without: int
    masked: int
    summaries: int
    compaction: str | None
    waited_s: float
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Progress:
    """Where a replay is. `compactions`: started so far."""

    sent: int
    total: int
    compactions: int
    reading: Reading | None


@dataclass(frozen=True)
class Report:
    """What happened. `compactions`: the log, oldest first; `summaries`: the chain, oldest first; both as the API gives
    them. `problems`: what is wrong beyond single contexts."""

    transcript: str
    api_base: str
    conversation: str
    model: str
    window: int
    limit: int
    messages: int
    readings: tuple[Reading, ...]
    compactions: tuple[JSON, ...]
    summaries: tuple[JSON, ...]
    problems: tuple[str, ...]
    seconds: float

    @property
    def applied(self) -> list[JSON]:
        return [one for one in self.compactions if one["outcome"] == "applied"]

    @property
    def all_problems(self) -> list[str]:
        found = [f"context at position {one.position}: {text}" for one in self.readings for text in one.problems]
        return found + list(self.problems)


def steps(messages: Sequence[JSON]) -> Iterator[list[JSON]]:
    """The batches of one append each: every message by itself, but results of parallel calls together.

    Anthropic's are one message already.
    """
    batch: list[JSON] = []
    for message in messages:
        if batch and not batch[-1]["role"] == message["role"] == "tool":
            yield batch
            batch = []
        batch.append(message)
    if batch:
        yield batch


def replay(
    api: Api, transcript: Transcript, options: Options, watch: Callable[[Progress], None] = lambda _: None
) -> Report:
    """Replay and report. Raises `ApiFailure`."""
    started = time.monotonic()
    messages = transcript.messages[: options.limit]
    run = _Run(api, _create(api, transcript, options))
    for batch in steps(messages):
        if batch[0]["role"] == "assistant":
            run.read_context()
        run.append(batch)
        watch(Progress(run.sent, len(messages), len(run.compactions), run.readings[-1] if run.readings else None))
    return run.report(transcript, started)


def _create(api: Api, transcript: Transcript, options: Options) -> JSON:
    return api.post(
        "conversations",
        {
            "format": transcript.format,
            "model": options.model or transcript.model or USUAL_MODEL[transcript.format],
            "system": transcript.system,
            "tools": transcript.tools,
            "context_window": options.window,
            "policy": {**ENABLED, **options.policy},
            "metadata": {"transcript": transcript.id},
        },
    )


class _Run:
    """What an agent product keeps of one conversation."""

    def __init__(self, api: Api, conversation: JSON) -> None:
        self.api = api
        self.conversation = conversation
        self.path = f"conversations/{conversation['id']}"
        self.readings: list[Reading] = []
        self.compactions: set[str] = set()
        self.sent = self.turns = 0
        self._meter = conversation["meter"]
        self._last_position = 0
        self._messages_tokens = 0
        self._version: str | None = None
        self._request: JSON | None = None
        self._answered = True
        self._stored: list[JSON] = []

    def read_context(self) -> None:
        """Ask for what to send next, waiting until it fits, and check it."""
        before = time.monotonic()
        while True:
            context = self.api.get(f"{self.path}/context", {"wait": WAIT_S})
            if not (context["degraded"] and context["compaction"]) or time.monotonic() - before > PATIENCE_S:
                break
            time.sleep(PAUSE_S)
        live = context["compaction"]["id"] if context["compaction"] else None
        self.compactions.update([live] if live else [])
        self._version = context["context_version"]
        due = self._request if self._must_show_request() else None
        self.readings.append(
            Reading(
                turn=self.turns,
                position=self._last_position,
                tokens=context["meter"]["tokens"],
                tokens_without=self._tokens_without(),
                masked=len(context["masked"]),
                summaries=len(context["summaries"]),
                compaction=live,
                waited_s=round(time.monotonic() - before, 3),
                problems=tuple(context_problems(context, due, self.conversation["format"])),
            )
        )

    def append(self, batch: list[JSON]) -> None:
        """Append as an agent must: told which context the response is for, refused if somebody else appended."""
        role = batch[0]["role"]
        body: JSON = {"messages": batch, "expected_last_position": self._last_position}
        if role == "assistant" and self._version is not None:
            body["context_version"] = self._version
        done = self.api.post(f"{self.path}/messages", body)
        stored = len(done["messages"])  # one less where a leading system message became the conversation's `system`
        self._stored += batch[len(batch) - stored :]
        self.sent += len(batch)
        self._meter, self._last_position = done["meter"], done["last_position"]
        self._messages_tokens += sum(message["tokens"] for message in done["messages"])
        if done["compaction"]:
            self.compactions.add(done["compaction"]["id"])
        if asks(batch[-1]):
            self._request, self._answered = batch[-1], False
            self.turns += 1
        elif role == "assistant":
            self._answered = True

    def report(self, transcript: Transcript, started: float) -> Report:
        """Let the last compaction end, and read the log and the chain."""
        context = self.api.get(f"{self.path}/context", {"wait": WAIT_S, "wait_for": "idle"})
        summaries = self.api.all(f"{self.path}/summaries")[::-1]
        return Report(
            transcript=transcript.id,
            api_base=self.api.base,
            conversation=self.conversation["id"],
            model=self.conversation["model"],
            window=self._meter["window"],
            limit=self._meter["limit"],
            messages=self.sent,
            readings=tuple(self.readings),
            compactions=tuple(self.api.all("compactions", {"conversation": self.conversation["id"]})[::-1]),
            summaries=tuple(summaries),
            problems=tuple(self._chain_problems(summaries, context)),
            seconds=round(time.monotonic() - started, 2),
        )

    def _tokens_without(self) -> int:
        parts = self._meter["breakdown"]
        return int(parts["system"] + parts["tools"] + self._messages_tokens)

    def _must_show_request(self) -> bool:
        """An unanswered request is never covered; an answered one stays if the policy says so (semantics 5)."""
        return not self._answered or bool(self.conversation["policy"].get("keep_last_user_request"))

    def _chain_problems(self, summaries: Sequence[JSON], context: JSON) -> Iterator[str]:
        """The active nodes cover a whole beginning of the conversation, and its originals can be read behind them."""
        active = sorted(
            (node for node in summaries if node["state"] == "active"), key=lambda n: int(n["from_position"])
        )
        if [node["id"] for node in active] != context["summaries"]:
            yield "the chain's active summaries are not those of the context"
        end = 0
        for node in active:
            if node["from_position"] != end + 1:
                yield f"summary {node['id']} begins at position {node['from_position']}, not {end + 1}"
            end = node["to_position"]
            originals = [one["message"] for one in self.api.all(f"summaries/{node['id']}/messages")]
            if originals != self._stored[node["from_position"] - 1 : end]:
                yield f"the originals behind summary {node['id']} are not what was appended"
        if end != (context["covered"] or {"to": 0})["to"]:
            yield f"the chain ends at position {end}, the context's summaries elsewhere"
