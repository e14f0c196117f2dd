"""Appending, checked against a few facts about the conversation's end instead of its history (semantics 1 and 4)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from compaction_service.engine.types import Answer, Call, Entry, Facts, MessageError, OpenCall

Kind = Literal["nothing", "exchange", "response", "other"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What an append must know of the messages before it. Bounded by the number of parallel calls.

    An assistant message abandons what is still open, so all open calls are of one message and their ids differ.
    """

    last_position: int = 0  # the highest ever handed out
    open_calls: tuple[OpenCall, ...] = ()
    answered: tuple[str, ...] = ()  # ids of the newest calling message that have their result
    abandoned: tuple[str, ...] = ()  # ids abandoned most recently
    unanswered_request: bool = False  # no assistant message follows the newest user request
    last: Kind = "nothing"  # what the newest message belongs to; "exchange": one with tool calls
    interrupted: bool = False  # something that is no result follows the open calls: each is shown a synthetic one

    @property
    def rest(self) -> bool:
        """The conversation stands at a completed response or a closed tool exchange (semantics 4)."""
        return self.last in ("response", "exchange") and not self.open_calls and not self.unanswered_request

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Ledger:
        calls = tuple(OpenCall(**call) for call in values["open_calls"])
        return cls(
            **{
                **values,
                "open_calls": calls,
                "answered": tuple(values["answered"]),
                "abandoned": tuple(values["abandoned"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """A batch that may be stored, and what storing it changes."""

    facts: tuple[Facts, ...]  # as given, each answer with the name of its tool
    ledger: Ledger
    abandoned: dict[
        int, tuple[Call, ...]
    ]  # calls it abandons, by the position of their message, stored or in the batch
    rest: bool  # it ends at a completed response or a closed tool exchange
    response: bool  # its last message is a completed response


def admit(ledger: Ledger, facts: Sequence[Facts], attr: str = "messages", *, first: int = 0) -> Admission:
    """Check a batch that follows `ledger`, and pair its results with their calls. Errors count from index `first`.

    MessageError, naming the result below `attr`: `call_abandoned`, `tool_result_duplicate`,
    `tool_result_without_call`.
    """
    state = _State(ledger)
    resolved = tuple(state.append(one, f"{attr}.{i}") for i, one in enumerate(facts, first))
    after = state.ledger()
    response = bool(facts) and facts[-1].response
    return Admission(resolved, after, state.newly_abandoned, bool(facts) and after.rest, response)


def abandon(ledger: Ledger, position: int) -> tuple[Ledger, tuple[Call, ...]]:
    """The open calls of the message at `position` given up (PATCH abandoned, semantics 1), and which they were."""
    given_up = tuple(call for call in ledger.open_calls if call.position == position)
    if not given_up:
        return ledger, ()
    ids = tuple(call.id for call in given_up)
    left = tuple(call for call in ledger.open_calls if call.position != position)
    return replace(ledger, open_calls=left, abandoned=ids), tuple(Call(call.id, call.name) for call in given_up)


def ledger_of(entries: Sequence[Entry], last_position: int) -> Ledger:
    """The ledger of stored messages, for a conversation whose newest ones were taken away (semantics 9).

    `entries` must reach back to the newest message with calls, or else be all there are.
    """
    state = _State(Ledger())
    for entry in entries:
        state.position = entry.position - 1
        state.append(entry.facts, f"messages.{entry.position}")
    ledger = replace(state.ledger(), last_position=last_position)
    given_up = {entry.position for entry in entries if entry.abandoned}
    if ledger.open_calls and ledger.open_calls[0].position in given_up:
        return abandon(ledger, ledger.open_calls[0].position)[0]
    return ledger


@dataclass(slots=True)
class _State:
    """A ledger while a batch is worked through: sets instead of tuples, so that a batch costs linear time."""

    before: Ledger
    position: int = field(init=False)
    open: dict[str, OpenCall] = field(init=False)
    answered: dict[str, None] = field(init=False)  # a set that keeps its order
    abandoned: dict[str, None] = field(init=False)
    unanswered: bool = field(init=False)
    last: Kind = field(init=False)
    interrupted: bool = field(init=False)
    newly_abandoned: dict[int, tuple[Call, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position = self.before.last_position
        self.open = {call.id: call for call in self.before.open_calls}
        self.answered = dict.fromkeys(self.before.answered)
        self.abandoned = dict.fromkeys(self.before.abandoned)
        self.unanswered = self.before.unanswered_request
        self.last = self.before.last
        self.interrupted = self.before.interrupted

    def append(self, facts: Facts, attr: str) -> Facts:
        self.position += 1
        if facts.role == "assistant":
            self._give_up_open()
            self._open(facts.calls)
            self.unanswered = False
        elif facts.request:
            self.unanswered = True
        resolved = facts
        if facts.answers:
            resolved = replace(facts, answers=tuple(self._answer(answer, attr) for answer in facts.answers))
        if facts.role == "assistant":
            self.interrupted = False
        elif facts.request or not facts.answers:
            self.interrupted = bool(self.open)
        self.last = "response" if facts.response else "exchange" if facts.calls or facts.answers else "other"
        return resolved

    def _give_up_open(self) -> None:
        if not self.open:
            return
        by_position: dict[int, list[Call]] = {}
        for call in self.open.values():
            by_position.setdefault(call.position, []).append(Call(call.id, call.name))
        self.newly_abandoned.update({position: tuple(calls) for position, calls in by_position.items()})
        self.abandoned = dict.fromkeys(self.open)
        self.open = {}

    def _open(self, calls: Iterable[Call]) -> None:
        self.open = {call.id: OpenCall(call.id, call.name, self.position) for call in calls}
        if self.open:  # until then a late duplicate can still be told from a result that never had a call
            self.answered = {}

    def _answer(self, answer: Answer, attr: str) -> Answer:
        call = self.open.pop(answer.id, None)
        if call is not None:
            self.answered[answer.id] = None
            return replace(answer, name=call.name)
        raise _refusal(answer, f"{attr}.{answer.path}" if answer.path else attr, self.answered, self.abandoned)

    def ledger(self) -> Ledger:
        return Ledger(
            last_position=self.position,
            open_calls=tuple(self.open.values()),
            answered=tuple(self.answered),
            abandoned=tuple(self.abandoned),
            unanswered_request=self.unanswered,
            last=self.last,
            interrupted=self.interrupted,
        )


def _refusal(answer: Answer, attr: str, answered: Container[str], abandoned: Container[str]) -> MessageError:
    if answer.id in answered:
        return MessageError("tool_result_duplicate", "This call already has its result.", attr)
    if answer.id in abandoned:
        return MessageError(
            "call_abandoned", "This call was abandoned: the conversation went on, or it was marked so.", attr
        )
    return MessageError(
        "tool_result_without_call", "A result must follow the assistant message that makes its call.", attr
    )
