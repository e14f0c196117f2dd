"""The engine's nouns: what a stored message means, and what a plan and a context are made of.

Everything here is immutable and knows nothing of Django. Positions are the conversation's (1, 2, 3, ...); tokens are
raw counts of the base encoding (docs/design.md); chars are lengths of compact, unescaped JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

JSON = Any  # a provider's object, as json.loads gives it


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call an assistant message makes."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool result inside a message: the call it answers, and what masking it would save (semantics 6)."""

    id: str
    name: str | None = None  # the tool, known once the result is paired with its call
    chars: int = 0  # length of the result's text
    saving: int = 0  # raw tokens saved by showing the placeholder instead
    saving_chars: int = 0
    path: str = field(default="", compare=False)  # where the id stands in the message, for errors: `tool_call_id`


@dataclass(frozen=True, slots=True)
class Facts:
    """What one provider message means, apart from its bytes (semantics 1)."""

    role: str
    calls: tuple[Call, ...] = ()
    answers: tuple[Answer, ...] = ()
    request: bool = False  # a user message with content other than tool results

    @property
    def response(self) -> bool:
        """A completed response: an assistant message without tool calls."""
        return self.role == "assistant" and not self.calls


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored message as planning and projection see it. `body` may be None where only planning is done."""

    position: int
    facts: Facts
    tokens: int = 0
    chars: int = 0
    extra_tokens: int = 0  # synthetic results shown for its abandoned calls
    masked: tuple[int, ...] = ()  # indices into facts.answers shown as placeholders
    thinking_tokens: int = 0  # saved by leaving its thinking out
    thinking_chars: int = 0
    thoughtless: bool = False  # its thinking is left out
    pinned: bool = False
    abandoned: bool = False
    body: JSON = field(default=None, compare=False)

    @property
    def shown_tokens(self) -> int:
        """Raw tokens of this message as a context shows it."""
        tokens = self.tokens + self.extra_tokens
        if self.thoughtless:
            tokens -= self.thinking_tokens
        return tokens - sum(self.facts.answers[i].saving for i in self.masked) if self.masked else tokens

    @property
    def shown_chars(self) -> int:
        chars = self.chars - (self.thinking_chars if self.thoughtless else 0)
        return chars - sum(self.facts.answers[i].saving_chars for i in self.masked)

    def without_thinking(self) -> Entry:
        """The same message with its thinking left out."""
        return replace(self, thoughtless=True) if self.thinking_tokens and not self.thoughtless else self

    def mask_oldest(self, tokens: int) -> Entry:
        """The same message with as many more of its results masked, the first ones first, as save so many tokens."""
        masked = set(self.masked)
        for index, answer in enumerate(self.facts.answers):
            if tokens <= 0:
                break
            if index not in masked and answer.saving > 0:
                masked.add(index)
                tokens -= answer.saving
        return replace(self, masked=tuple(sorted(masked)))

    def mask_all(self) -> Entry:
        """The same message with every result that saves something masked."""
        masked = tuple(i for i, a in enumerate(self.facts.answers) if a.saving > 0)
        return replace(self, masked=masked)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call with no result yet."""

    id: str
    name: str
    position: int


class Exchange(NamedTuple):
    """The smallest unit that may be cut off: entries[start:end] of the live messages (semantics 1)."""

    start: int
    end: int  # exclusive
    open: bool  # a call of it has no result and is not abandoned
    seen: bool  # an assistant message follows its results (True where it has none)


@dataclass(frozen=True, slots=True)
class Summary:
    """An active chain node as a context shows it."""

    id: str
    text: str
    tokens: int
    from_position: int
    to_position: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction would cover (semantics 5). Nothing to cover: `irreducible` says why, `covered` is empty."""

    covered: tuple[int, ...]  # positions, contiguous
    kept: tuple[int, ...]
    carried: tuple[int, ...]  # positions shown verbatim after the summaries once applied
    span_tokens: int  # raw tokens the covered messages have in today's context
    freed_tokens: int  # raw tokens of messages shown today, covered or carried, and no more once applied
    summary_target: int  # tokens the summary is asked to have (semantics 7)
    predicted_tokens: int  # of the whole context, the summary at its target length
    target_reached: bool
    irreducible: str | None = None

    @property
    def from_position(self) -> int | None:
        return self.covered[0] if self.covered else None

    @property
    def to_position(self) -> int | None:
        return self.covered[-1] if self.covered else None


class MessageError(Exception):
    """A message that cannot be stored. `attr` is the path inside the request, e.g. `messages.3.tool_call_id`."""

    def __init__(self, code: str, detail: str, attr: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.attr = attr
