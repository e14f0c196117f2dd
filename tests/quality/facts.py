"""Odd values said once, early, and six compactions: which of them are still in the summary.

The model is the scripted one of the tests, which keeps the names, paths and numbers that its prompt shows it; what is
measured with it is that our prompts carry them, round after round, not how well a model writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from compaction_service.engine.summary import bound, preserve, prompt, transcript
from compaction_service.engine.summary.extractive import extract
from compaction_service.engine.summary.span import SpanMessage
from tests.model_server import honest

from .spans import count, span

ROUNDS = 6
BOUND = 4096
RATIO = 8
SECTIONS = ("Overall Goal", "Next Steps", "Active Files")
PLANTED = {
    "port 48213": "Our staging proxy listens on port 48213.",
    "INV-99231": "The invoice they dispute is INV-99231.",
    "srv/kestrel/main.conf": "The settings live in /srv/kestrel/main.conf on the old host.",
    "ERR_QUOTA_7": "What users see is ERR_QUOTA_7 and a blank page.",
    "Zanzibar": "My colleague Odile moved to Zanzibar in spring.",
    "2031-02-17": "The licence runs out on 2031-02-17.",
    "node7": "Never restart node7, whatever the monitoring says.",
    "https://kestrel.example/x9": "The runbook is at https://kestrel.example/x9 for everybody.",
    "4f9c2ab": "It worked until commit 4f9c2ab.",
    "713.40": "We were charged 713.40 euros twice.",
    "max_inflight_jobs": "I set max_inflight_jobs to a quarter of the default.",
    "PostgreSQL 16.3": "Production is on PostgreSQL 16.3, not newer.",
    "Dr. Anneliese Quist": "Ask Dr. Anneliese Quist before anything goes to patients.",
    "+44 20 7946 0991": "The pager is +44 20 7946 0991, day and night.",
    "blue-green": "We decided on a blue-green rollout instead of canaries.",
    "peanuts": "I am allergic to peanuts, so no satay.",
    "上海虹桥": "我们下次在上海虹桥见面。",
    "Fischmarkt 12": "Die Lieferung geht an den Fischmarkt 12 in Hamburg.",
    "0.0375": "The learning rate that converged was 0.0375.",
    "tests/test_ledger.py": "Only tests/test_ledger.py still fails.",
}
Summarise = Callable[[Sequence[SpanMessage], str], str]


def rounds(messages: Sequence[Any]) -> Iterator[tuple[SpanMessage, ...]]:
    """The spans of six compactions: the messages in equal parts, the values said by the user in the first of them."""
    said = [{"role": "user", "content": sentence} for sentence in PLANTED.values()]
    size = len(messages) // ROUNDS
    for number in range(ROUNDS):
        part = list(messages[number * size : (number + 1) * size])
        if number == 0:  # one after every other message, as they come up in a talk
            step = max(1, len(part) // len(said))
            for nth, message in enumerate(said):
                part.insert(nth * (step + 1), message)
        yield span("openai", part)


def survival(messages: Sequence[Any], summarise: Summarise) -> list[float]:
    """The share of the values in the summary after each compaction."""
    shares, previous = [], ""
    for one in rounds(messages):
        previous = summarise(one, previous)
        shares.append(sum(value in previous for value in PLANTED) / len(PLANTED))
    return shares


def target(messages: Sequence[SpanMessage], previous: str) -> int:
    """As `planning` has it."""
    size = sum(count(part.text) for message in messages for part in message.parts)
    return min(BOUND, max(100, count(previous) + size // RATIO))


def extractive(messages: Sequence[SpanMessage], previous: str) -> str:
    made = extract(
        messages,
        sections=SECTIONS,
        bound=BOUND,
        target=target(messages, previous),
        count=count,
        previous=previous or None,
    )
    return made.text


def by_model(messages: Sequence[SpanMessage], previous: str) -> str:
    kept = preserve.facts(previous, messages, target(messages, previous) // preserve.SHARE, count)
    wanted = prompt.Wanted(SECTIONS, target(messages, previous), BOUND, preserved=kept)
    asked = prompt.summary(wanted, transcript.render(messages), previous=previous)
    ask = honest.read(
        {"messages": [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.user}]}
    )
    return bound.cut(honest.write(ask, ask.length or BOUND), BOUND, count)
