"""Appending checked against the conversation's end (semantics 1 and 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.engine import formats, jsontext
from compaction_service.engine.admit import Admission, Ledger, abandon, admit, ledger_of
from compaction_service.engine.types import Answer, Call, Entry, Facts, MessageError
from tests.transcripts import FOLDER

USER = Facts("user", request=True)
SAID = Facts("assistant")
SYSTEM = Facts("system")


def calling(*ids: str) -> Facts:
    return Facts("assistant", calls=tuple(Call(id_, f"tool_{id_}") for id_ in ids))


def result(*ids: str, request: bool = False) -> Facts:
    answers = tuple(Answer(id_, path="tool_call_id") for id_ in ids)
    return Facts("user" if request else "tool", answers=answers, request=request)


def after(*facts: Facts) -> Ledger:
    return admit(Ledger(), facts).ledger


def refusal(ledger: Ledger, *facts: Facts) -> tuple[str, str]:
    with pytest.raises(MessageError) as caught:
        admit(ledger, facts)
    return caught.value.code, caught.value.attr


def outcome(ledger: Ledger, facts: Sequence[Facts]) -> Admission | MessageError:
    try:
        return admit(ledger, facts)
    except MessageError as error:
        return error


def test_admit__results_of_parallel_calls_with_messages_between__are_paired() -> None:
    admitted = admit(after(USER, calling("x", "y")), [result("y"), USER, SYSTEM, result("x")])

    assert [a.name for facts in admitted.facts for a in facts.answers] == ["tool_y", "tool_x"]
    assert admitted.abandoned == {}
    assert admitted.ledger.open_calls == ()
    assert admitted.ledger.last_position == 6


@pytest.mark.parametrize(
    ("facts", "rest", "response"),
    [
        ([USER], False, False),
        ([USER, SAID], True, True),
        ([SYSTEM], False, False),
        ([USER, calling("x")], False, False),
        ([USER, calling("x"), result("x")], True, False),
        ([USER, calling("x", "y"), result("x")], False, False),
        ([USER, SAID, USER], False, False),
        ([USER, calling("x"), USER, result("x")], False, False),
        ([calling("x"), result("x", request=True)], False, False),
        ([calling("x"), SAID], True, True),
        ([], False, False),
    ],
)
def test_admit__end_of_the_batch__says_whether_the_conversation_rests(
    facts: list[Facts], rest: bool, response: bool
) -> None:
    admitted = admit(Ledger(), facts)

    assert (admitted.rest, admitted.response) == (rest, response)


@pytest.mark.parametrize(
    ("facts", "unanswered"),
    [([], False), ([USER], True), ([USER, SYSTEM], True), ([USER, SAID], False), ([calling("x"), result("x")], False)],
)
def test_admit__newest_user_request__is_unanswered_until_an_assistant_message(
    facts: list[Facts], unanswered: bool
) -> None:
    assert after(*facts).unanswered_request is unanswered


def test_admit__assistant_message_after_open_calls__abandons_them_by_position() -> None:
    admitted = admit(after(calling("x", "y"), result("x")), [calling("z"), USER, SAID])

    assert admitted.abandoned == {1: (Call("y", "tool_y"),), 3: (Call("z", "tool_z"),)}
    assert refusal(admitted.ledger, result("z")) == ("call_abandoned", "messages.0.tool_call_id")


def test_admit__result_without_any_call__is_refused() -> None:
    assert refusal(after(USER, SAID), USER, result("x")) == ("tool_result_without_call", "messages.1.tool_call_id")


def test_admit__second_result_of_a_call__is_refused() -> None:
    ledger = after(calling("x", "y"), result("x"))

    assert refusal(ledger, result("x")) == ("tool_result_duplicate", "messages.0.tool_call_id")
    assert refusal(ledger, result("y"), SAID, result("y")) == ("tool_result_duplicate", "messages.2.tool_call_id")


def test_admit__id_used_again__pairs_with_the_open_call() -> None:
    ledger = after(calling("x"), result("x"), calling("x"))

    assert admit(ledger, [result("x")]).ledger.open_calls == ()
    assert after(calling("x"), calling("x"), result("x")).open_calls == ()


def test_admit__answer_without_a_path__names_the_message() -> None:
    assert refusal(Ledger(), Facts("tool", answers=(Answer("x"),))) == ("tool_result_without_call", "messages.0")


def test_abandon__message_with_open_calls__closes_its_exchange() -> None:
    ledger, given_up = abandon(after(USER, calling("x", "y"), result("x")), 2)

    assert given_up == (Call("y", "tool_y"),)
    assert ledger.rest
    assert refusal(ledger, result("y"))[0] == "call_abandoned"
    assert refusal(ledger, result("x"))[0] == "tool_result_duplicate"


def test_abandon__message_without_open_calls__changes_nothing() -> None:
    ledger = after(USER, calling("x"))

    assert abandon(ledger, 1) == (ledger, ())


def test_ledger_of__rewound_conversation__goes_on_from_its_new_end() -> None:
    entries = [Entry(1, USER), Entry(4, calling("x", "y")), Entry(5, result("x"))]

    ledger = ledger_of(entries, last_position=9)

    assert [call.id for call in ledger.open_calls] == ["y"]
    assert ledger.open_calls[0].position == 4
    assert admit(ledger, [result("y")]).ledger.last_position == 10


def test_ledger_of__abandoned_message__has_no_open_calls() -> None:
    ledger = ledger_of([Entry(1, calling("x", "y"), abandoned=True), Entry(2, result("x"))], last_position=3)

    assert ledger.open_calls == ()
    assert refusal(ledger, result("y"))[0] == "call_abandoned"


def test_admit__many_parallel_calls__costs_linear_time_and_a_bounded_ledger() -> None:
    ids = [str(i) for i in range(20_000)]

    admitted = admit(Ledger(), [calling(*ids), *(result(id_) for id_ in ids), calling("x")])

    assert len(admitted.facts) == 20_002
    assert len(admitted.ledger.open_calls) + len(admitted.ledger.answered) + len(admitted.ledger.abandoned) == 1


IDS = st.sampled_from(["a", "b", "c", "\0\ud800"])
MESSAGES = st.one_of(
    st.sampled_from([USER, SAID, SYSTEM]),
    st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: calling(*ids)),
    st.builds(lambda ids, request: result(*ids, request=request), st.lists(IDS, min_size=1, max_size=2), st.booleans()),
)


@given(st.lists(st.lists(MESSAGES, max_size=4), max_size=12))
def test_admit__random_interleavings__accepts_only_what_pairs(batches: list[list[Facts]]) -> None:
    ledger, entries = Ledger(), []
    for batch in batches:
        admitted = outcome(ledger, batch)
        if isinstance(admitted, MessageError):
            assert admitted.code in {"tool_result_without_call", "tool_result_duplicate", "call_abandoned"}
            assert admitted.attr.startswith("messages.")
            continue
        first = ledger.last_position + 1
        entries += [Entry(position, facts) for position, facts in enumerate(admitted.facts, first)]
        entries = [replace(e, abandoned=e.abandoned or e.position in admitted.abandoned) for e in entries]
        ledger = Ledger.from_dict(jsontext.loads(jsontext.dumps(admitted.ledger.as_dict())))
        assert ledger == admitted.ledger

    open_calls: dict[str, str] = {}
    for entry in entries:
        if entry.facts.role == "assistant":
            open_calls = {call.id: call.name for call in entry.facts.calls}
        for answer in entry.facts.answers:
            assert answer.name == open_calls.pop(answer.id)
    assert {call.id: call.name for call in ledger.open_calls} == open_calls
    assert ledger_of(entries, ledger.last_position) == ledger


@given(st.lists(MESSAGES, max_size=20), st.integers(0, 20))
def test_admit__batch_cut_in_two__ends_the_same(facts: list[Facts], cut: int) -> None:
    whole = outcome(Ledger(), facts)
    if isinstance(whole, MessageError):
        return
    first = admit(Ledger(), facts[:cut])
    second = admit(first.ledger, facts[cut:])

    assert second.ledger == whole.ledger
    assert first.facts + second.facts == whole.facts


@pytest.mark.parametrize(("request_too", "interrupted"), [(False, False), (True, True)])
def test_admit__result_that_leaves_a_call_open__interrupts_it_only_with_a_request(
    request_too: bool, interrupted: bool
) -> None:
    calling = Facts("assistant", calls=(Call("x", "bash"), Call("y", "bash")))
    first = admit(Ledger(), [calling, Facts("user", answers=(Answer("x"),), request=request_too)])

    assert first.ledger.interrupted is interrupted
    assert admit(first.ledger, [Facts("user", answers=(Answer("y"),), request=True)]).ledger.interrupted is False


def transcripts() -> Iterator[dict[str, Any]]:
    files = sorted(FOLDER.glob("*.jsonl"))
    if not files:
        pytest.skip("no transcripts: set TRANSCRIPTS to a folder of *.jsonl conversations")
    for file in files:
        for line in file.read_text(encoding="utf-8").split("\n"):
            if line:
                conversation = json.loads(line)
                if conversation["format"] == "openai":
                    yield conversation


def brought_in(conversation: dict[str, Any]) -> Admission | MessageError:
    chat = formats.get("openai")
    try:
        chat.check_system(conversation["system"], "system")
        facts = [chat.read(message, f"messages.{i}") for i, message in enumerate(conversation["messages"])]
        return admit(Ledger(), facts)
    except MessageError as error:
        return error


def test_admit__real_transcripts__all_are_accepted_and_odd_ones_name_the_place() -> None:
    for conversation in transcripts():
        admitted = brought_in(conversation)
        if isinstance(admitted, MessageError):
            assert "oddity" in conversation, f"{conversation['id']}: {admitted.attr}: {admitted}"
            assert admitted.attr.startswith("messages.")
            continue
        assert all(answer.name for facts in admitted.facts for answer in facts.answers)
        assert all(message == jsontext.loads(jsontext.dumps(message)) for message in conversation["messages"])
        if "oddity" not in conversation:
            formats.get("openai").check_tools(conversation["tools"], "tools")
            assert admitted.abandoned == {}
