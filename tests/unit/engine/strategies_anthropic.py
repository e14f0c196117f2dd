"""Random Anthropic conversations as the service would store them: the steps of `strategies`, played as messages of
every shape the API knows, and of some it does not take but a client may have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from compaction_service.engine.admit import Ledger, admit
from compaction_service.engine.formats import anthropic
from compaction_service.engine.formats.base import NO_RESULT
from compaction_service.engine.types import Answer, Call, Entry, Facts
from tests.unit.engine.context_rules_anthropic import blocks
from tests.unit.engine.strategies import OVERHEAD, TOOLS, Body, Step, Store, count

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
DOCUMENT = {"type": "document", "source": {"type": "file", "file_id": "f"}, "title": "Report"}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "aGlkZGVu"}
SEARCH = [
    {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"type": "web_search_result", "url": "u"}]},
]


def text(value: str) -> Body:
    return {"type": "text", "text": value}


def body_tokens(body: Body) -> int:
    """What one rendered message costs, counted from nothing: block by block, so that merging cannot add to it."""
    return OVERHEAD + sum(map(_block_tokens, blocks(body)))


def _block_tokens(block: Body) -> int:
    kind = block["type"]
    if kind == "text":
        return count(block["text"])
    if kind == "tool_result":
        content = block.get("content", "")
        return 2 + (count(content) if isinstance(content, str) else sum(map(_block_tokens, content)))
    if kind == "tool_use":  # its id costs the same, however long
        return 2 + count(json.dumps({**block, "id": ""}))
    return 2 + count(json.dumps(block))


def says_nothing(body: Body) -> bool:
    """Nothing of the message can be shown."""
    return not [
        block
        for block in blocks(body)
        if block["type"] not in ("thinking", "redacted_thinking") and (block["type"] != "text" or block["text"].strip())
    ]


def flat(messages: list[Body]) -> list[tuple[str, Body]]:
    """A context block by block, the way a provider's cache sees it."""
    return [(message["role"], block) for message in messages for block in blocks(message)]


def stored(messages: Sequence[Body], count_tokens: Callable[[Body], int] = body_tokens) -> tuple[Entry, ...]:
    """The messages read, admitted and counted as the service does it."""
    facts = [anthropic.read(message, f"messages.{i}") for i, message in enumerate(messages)]
    admitted = admit(Ledger(), facts)
    entries = []
    for position, (message, known) in enumerate(zip(messages, admitted.facts, strict=True), 1):
        made_up = count_tokens(anthropic.synthetic_result(Call("x", "bash"), NO_RESULT))
        given_up = admitted.abandoned.get(position, ())
        opening = anthropic.opening(message) if position == 1 else None
        names = [answer.name for answer in known.answers]
        answers = tuple(
            replace(answer, saving=count_tokens(message) - count_tokens(anthropic.mask(message, (index,), names)))
            for index, answer in enumerate(known.answers)
        )
        entry = Entry(
            position,
            replace(known, answers=answers),
            tokens=count_tokens(message) + (count_tokens(opening) if opening else 0),
            extra_tokens=len(given_up) * made_up,
            abandoned=bool(given_up),
            body=message,
        )
        entries.append(entry)
    return tuple(entries)


class AnthropicStore(Store):
    def step(self, step: Step) -> None:
        kind, number, said = step
        if kind == "user":
            self.append({"role": "user", "content": _asked(number, said)})
        elif kind == "developer":
            self.append({"role": "system", "content": said if number % 2 else [text(f"{said}.")]})
        elif kind == "assistant":
            self.append({"role": "assistant", "content": _answered(number, said)})
        elif kind == "call":
            made = [self._call(number + i, said, i) for i in range(1 + number % 3)]
            before = ([text(said)], [THINKING, text(said)], [REDACTED], [])[number % 4]
            self.append({"role": "assistant", "content": [*before, *made]})
        elif kind == "result" and self._waiting:
            self.append({"role": "user", "content": [*self._results(number, said)]})
        elif kind == "abandon" and self._waiting:
            self.abandon()

    def _call(self, number: int, said: str, nth: int) -> Body:
        """An id may have been used before, though never in the same message."""
        identifier = f"{self._new_call(number, said)['id']}_{nth}"
        return {"type": "tool_use", "id": identifier, "name": TOOLS[number % len(TOOLS)], "input": {"q": said}}

    def _results(self, number: int, said: str) -> Iterator[Body]:
        """One or two results in several shapes; text before, between or behind them."""
        if number == 1:
            yield text(said)
        for i, (_, call) in enumerate(self._waiting[: 1 + number % 2]):
            content: Any = (said, [text(said), IMAGE], [text(""), text(said)])[(number + i) % 3]
            yield {"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": number == 2}
            if number == 3:
                yield text("And now?")

    def append(self, body: Body) -> Entry:
        if body["role"] == "assistant":
            self.abandon()
        position = len(self.entries) + 1
        facts = facts_of(body)
        facts = replace(facts, answers=tuple(self._paired(body, facts)))
        self._waiting += [(position, call) for call in facts.calls]
        opening = anthropic.opening(body) if position == 1 else None
        tokens = body_tokens(body) + (body_tokens(opening) if opening else 0)
        self.entries.append(Entry(position, facts, tokens=tokens, chars=len(str(body)), body=body))
        return self.entries[-1]

    def _paired(self, body: Body, facts: Facts) -> Iterator[Answer]:
        names = []
        for answer in facts.answers:
            found = next(i for i, (_, call) in enumerate(self._waiting) if call.id == answer.id)
            names.append(self._waiting.pop(found)[1].name)
        for index, answer in enumerate(facts.answers):
            saving = body_tokens(body) - body_tokens(anthropic.mask(body, (index,), names))
            yield replace(answer, name=names[index], saving=saving, saving_chars=0)


def facts_of(body: Body) -> Facts:
    """What a message means; written for these bodies alone."""
    made = tuple(Call(b["id"], b["name"]) for b in blocks(body) if b["type"] == "tool_use")
    answers = tuple(Answer(b["tool_use_id"]) for b in blocks(body) if b["type"] == "tool_result")
    other = [b for b in blocks(body) if b["type"] != "tool_result"]
    asks = body["role"] == "user" and not says_nothing({"role": "user", "content": other})
    return Facts(body["role"], made, answers, request=asks)


def _asked(number: int, said: str) -> Any:
    return (said, [text(said)], [text(said), IMAGE], [text(""), text(said)], [], [text(" "), DOCUMENT])[number]


def _answered(number: int, said: str) -> Any:
    return (said, [text(said)], [THINKING, text(said)], [text(said), REDACTED], [], [*SEARCH, text(said)])[number]
