"""Random OpenAI conversations as the service would store them, and their tokens under a toy tokenizer.

A conversation is drawn as a list of small steps and played: a step that makes no sense where it stands (a result with
no open call) does nothing, so whatever Hypothesis shrinks to is still a conversation the service would have accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from compaction_service.engine.formats import openai
from compaction_service.engine.types import Answer, Call, Entry, Facts, Summary

OVERHEAD = 3  # tokens of a message besides its texts
TOOLS = ("bash", "read_file", "search")
ODD_TEXTS = ("", "\x00", "\ud800", "{braces} %s %(x)d", "é" * 7, "😀" * 40, "word " * 300, "<|endoftext|>", "n" * 9000)

Step = tuple[str, int, str]
Body = dict[str, Any]

texts = st.one_of(st.text(max_size=30), st.sampled_from(ODD_TEXTS))
steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["user", "assistant", "call", "call", "result", "result", "result", "developer", "abandon"]),
    st.integers(min_value=0, max_value=5),
    texts,
)


def summary(text: str, from_position: int, to_position: int) -> Summary:
    return Summary(f"s{from_position}-{to_position}", text, OVERHEAD + count(text), from_position, to_position)


def count(text: str) -> int:
    """A toy tokenizer: not additive, and dearer for some characters, as real ones are."""
    return (len(text) + 3) // 4 + text.count("n") // 2 + text.count("😀")


def body_tokens(body: Body) -> int:
    """What one rendered message costs, counted from nothing."""
    content = body.get("content")
    arguments = [call["function"]["arguments"] for call in body.get("tool_calls", ())]
    return OVERHEAD + count(content or "") + sum(count(text) for text in arguments)


def facts_of(body: Body) -> Facts:
    """What a message means; written for these bodies alone, so that tests here need no format of the service."""
    calls = tuple(Call(call["id"], call["function"]["name"]) for call in body.get("tool_calls", ()))
    if body["role"] != "tool":
        return Facts(body["role"], calls, request=body["role"] == "user")
    return Facts("tool", answers=(Answer(body["tool_call_id"], chars=len(body["content"])),))


class Store:
    """The messages of one conversation: hands out positions, pairs results, abandons calls (semantics 1)."""

    def __init__(self, synthetic_tokens: int = 0) -> None:
        self.entries: list[Entry] = []
        self.synthetic_tokens = synthetic_tokens
        self._waiting: list[tuple[int, Call]] = []  # (position, call) without a result, oldest first
        self._made = 0

    def play(self, played: Iterable[Step]) -> Store:
        for step in played:
            self.step(step)
        return self

    def step(self, step: Step) -> None:
        kind, number, text = step
        if kind in ("user", "developer"):
            self.append({"role": kind, "content": text})
        elif kind == "assistant":
            self.append({"role": "assistant", "content": text})
        elif kind == "call":
            calls = [self._new_call(number + i, text) for i in range(1 + number % 3)]
            self.append({"role": "assistant", "content": None if number % 2 else text, "tool_calls": calls})
        elif kind == "result" and self._waiting:
            call = self._waiting[number % len(self._waiting)][1]
            self.append({"role": "tool", "tool_call_id": call.id, "content": text})
        elif kind == "abandon" and self._waiting:
            self.abandon()

    def _new_call(self, number: int, text: str) -> Body:
        """Every third call takes an id used before, as some providers do."""
        self._made += 1
        identifier = f"call_{self._made if self._made % 3 else max(1, self._made - 3 - number)}"
        return {
            "id": identifier,
            "type": "function",
            "function": {"name": TOOLS[number % len(TOOLS)], "arguments": json.dumps({"q": text})},
        }

    def append(self, body: Body) -> Entry:
        if body["role"] == "assistant":
            self.abandon()
        facts = facts_of(body)
        position = len(self.entries) + 1
        if facts.answers:
            facts = Facts("tool", answers=(self._answer(facts.answers[0], body["content"]),))
        self._waiting += [(position, call) for call in facts.calls]
        entry = Entry(position, facts, tokens=body_tokens(body), chars=len(str(body)), body=body)
        self.entries.append(entry)
        return entry

    def _answer(self, answer: Answer, text: str) -> Answer:
        found = next(i for i in range(len(self._waiting) - 1, -1, -1) if self._waiting[i][1].id == answer.id)
        name = self._waiting.pop(found)[1].name
        saving = count(text) - count(openai.placeholder(name))
        return replace(answer, name=name, saving=saving, saving_chars=len(text) - len(openai.placeholder(name)))

    def pin(self, position: int, pinned: bool = True) -> None:
        self.entries[position - 1] = replace(self.entries[position - 1], pinned=pinned)

    def abandon(self) -> None:
        for position, _ in self._waiting:
            entry = self.entries[position - 1]
            extra = entry.extra_tokens + self.synthetic_tokens
            self.entries[position - 1] = replace(entry, abandoned=True, extra_tokens=extra)
        self._waiting.clear()


def stored(played: Sequence[Step], synthetic_tokens: int = 0) -> list[Entry]:
    return Store(synthetic_tokens).play(played).entries


conversations: st.SearchStrategy[list[Step]] = st.one_of(
    st.lists(steps, max_size=8),
    st.lists(steps, min_size=12, max_size=40),  # the first alone would hardly ever draw a long one
)


def live(script: str, tokens: int = 10) -> list[Entry]:
    """Messages from the notation of semantics 5: `u1 ac2(x,y) t3(x) u4 t5(y) a6`, `d` a developer message, `!` a pin.

    A call without names is a call of id `x`; every message costs `tokens`.
    """
    entries = []
    for kind, position, ids, pin in re.findall(r"(ac|[uatd])(\d+)(?:\(([\w,]*)\))?(!?)", script):
        names = ids.split(",") if ids else ["x"]
        if kind == "ac":
            facts = Facts("assistant", calls=tuple(Call(name, "bash") for name in names))
        elif kind == "t":
            facts = Facts("tool", answers=tuple(Answer(name) for name in names))
        else:
            facts = Facts({"u": "user", "a": "assistant", "d": "developer"}[kind], request=kind == "u")
        entries.append(Entry(int(position), facts, tokens=tokens, pinned=bool(pin)))
    return entries
