"""Counting and rendering, without a database: against tiktoken, against reading the same JSON, against providers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

import orjson

from compaction_service.engine import formats, planning
from compaction_service.engine.formats.base import Format
from compaction_service.engine.projection import Parts, render
from compaction_service.engine.types import Entry
from compaction_service.tokens.count import count_text
from compaction_service.tokens.encodings import encoding
from compaction_service.tokens.messages import Counter, counter_for
from tests.bench.figures import Figure, Figures, ratio, rounded
from tests.bench.service import Bench
from tests.transcripts import anthropic_transcript, sources, transcript
from tests.unit.tokens.test_usage_error import recorded_requests

ENCODING = "o200k_base"
ROUNDS = 5
LIVE = 10_000
PLAN: dict[str, Any] = {
    "preserve_recent_turns": 1, "keep_last_user_request": True, "keep_first_user_request": False, "target": 0.5,
    "limit": 100_000, "room": 120_000, "fixed_tokens": 10, "kept_summaries_tokens": 0, "replaced_summaries_tokens": 0,
    "ratio": 8, "bound": 4096,
}  # fmt: skip
MEGABYTE = 1_000_000
HOSTILE = (
    *("a", " ", "\n", "\t", "\r\n", "0", "_", "=", ".", "{}", "\x00", "é", "漢", "あ", "ก", "😀", "\ud800"),
    *("<|endoftext|>", "aZ9+/", "ab "),
)


def _seconds(act: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _in_turns(*acts: Callable[[], Any]) -> list[list[float]]:
    """Seconds of each act, ROUNDS times in turns, after one time that does not count."""
    for act in acts:
        act()
    rounds = [[_seconds(act) for act in acts] for _ in range(ROUNDS)]
    return [list(of_one) for of_one in zip(*rounds, strict=True)]


def counting(_bench: Bench) -> Figures:
    """Real messages through our counter, against `encode_ordinary` of the same texts."""
    counter, raw = counter_for(ENCODING, 1.0), encoding(ENCODING)
    messages = [m for name in sources() for m in transcript(name, 300).messages if isinstance(m.get("content"), str)]

    def ours() -> None:
        for message in messages:
            counter.message("openai", message)

    def theirs() -> None:
        for message in messages:
            raw.encode_ordinary(message["content"].encode(errors="replace").decode())

    counted, encoded = _in_turns(ours, theirs)
    size = sum(len(m["content"].encode(errors="replace")) for m in messages)
    detail = {"messages": len(messages), "MB_per_s": rounded(size / median(counted) / 1e6)}
    return {"count_vs_tiktoken": Figure(ratio(encoded, counted), "ratio", ">= 0.9", detail)}


def counting_worst(_bench: Bench) -> Figures:
    """The slowest of the hostile texts, a megabyte each, against prose of the same size."""
    prose = "".join(m["content"] for m in transcript("hh_rlhf").messages if isinstance(m["content"], str))
    hostile = {repr(unit): (unit * MEGABYTE)[:MEGABYTE] for unit in HOSTILE}
    per_mb = {name: _seconds_per_mb(text) for name, text in hostile.items()}
    base = _seconds_per_mb(prose[:MEGABYTE])
    worst = max(per_mb, key=lambda name: per_mb[name])
    detail = {"worst": worst, "ratios": {name: rounded(value / base) for name, value in per_mb.items()}}
    return {"count_worst": Figure(rounded(per_mb[worst] / base), "ratio", "<= 8", detail)}


def _seconds_per_mb(text: str) -> float:
    size = len(text.encode(errors="surrogatepass")) / 1e6
    return min(_seconds(partial(count_text, text, ENCODING)) for _ in range(3)) / size


def count_error(_bench: Bench) -> Figures:
    """Our counts against what providers charged for recorded requests, before any calibration."""
    made: Figures = {}
    recorded = list(recorded_requests())
    for name, method, target in (("openai", "exact", "<= 1"), ("other", "estimate", "<= 12")):
        errors = [100 * one.error for one in recorded if one.counter.method == method]
        detail = {"requests": len(errors), "worst": rounded(max(errors))}
        made[f"count_error_{name}"] = Figure(rounded(median(errors)), "% (median)", target, detail)
    return made


def rendering(_bench: Bench) -> Figures:
    """Planning and rendering 10,000 live messages once, against reading the same messages with `orjson.loads`."""
    sources = {
        "openai": _repeated(transcript("tau_bench").messages),
        "anthropic": _repeated(anthropic_transcript("pi_mono").messages),
    }
    ratios = {name: _rendered(formats.get(name), messages) for name, messages in sources.items()}
    worst = max(ratios.values())
    return {"plan_render_ms": Figure(worst, "ratio", "<= 3", {"messages": LIVE, **ratios})}


def _rendered(fmt: Format, messages: list[Any]) -> float:
    counter = counter_for(ENCODING, 1.0)
    texts = [orjson.dumps(message) for message in messages]
    entries = tuple(_entry(fmt, counter, number, message) for number, message in enumerate(messages, 1))
    parts = Parts(system="You are an agent.", tools=None, summaries=(), carried=(), tail=entries, summary_prefix="")

    def ours() -> None:
        planning.plan(entries, (), **PLAN)
        render(fmt, parts)

    spent, read = _in_turns(ours, lambda: [orjson.loads(text) for text in texts])
    return ratio(spent, read)


def _entry(fmt: Format, counter: Counter, position: int, message: Any) -> Entry:
    tokens = counter.message(fmt.name, message)
    return Entry(position=position, facts=fmt.read(message, "messages"), tokens=tokens, chars=0, body=message)


def _repeated(messages: list[Any]) -> list[Any]:
    """LIVE messages: the same conversations again and again, their call ids made their own."""

    def again() -> Iterator[Any]:
        for number in range(LIVE):
            text = json.dumps(messages).replace('"call_', f'"call{number}_').replace('"toolu_', f'"toolu{number}_')
            yield from json.loads(text)

    return list(islice(again(), LIVE))
