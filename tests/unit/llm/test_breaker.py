from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.llm.breaker import BreakerState, Outcome, decide, outcome_of, record
from compaction_service.llm.errors import call_error

T = 1_700_000_000.0
CLOSED = BreakerState()


FOUR: list[Outcome] = ["failure"] * 4


def after(*outcomes: Outcome) -> BreakerState:
    state = CLOSED
    for outcome in outcomes:
        state = record(state, outcome, T)
    return state


def test_breaker__fewer_failures_than_it_takes__allows() -> None:
    assert decide(after(*FOUR), T) == "allow"


def test_breaker__failures_in_a_row__opens() -> None:
    assert decide(after(*FOUR, "failure"), T + 1) == "refuse"


@pytest.mark.parametrize("between", ["success", "unrelated"])
def test_breaker__answer_between_failures__starts_the_count_again(between: Outcome) -> None:
    assert decide(after(*FOUR, between, *FOUR), T) == "allow"


def test_breaker__fatal_failure__opens_at_once() -> None:
    assert decide(after("fatal"), T + 1) == "refuse"


def test_breaker__pause_over__lets_one_caller_probe() -> None:
    opened = after("fatal")
    assert decide(opened, T + 30) == "probe"

    probing = record(opened, "probe", T + 30)

    assert decide(probing, T + 31) == "refuse"


def test_breaker__probe_that_succeeds__closes() -> None:
    probing = record(after("fatal"), "probe", T + 30)

    assert record(probing, "success", T + 31) == CLOSED


@pytest.mark.parametrize("outcome", ["failure", "fatal"])
def test_breaker__probe_that_fails__opens_for_another_pause(outcome: Outcome) -> None:
    reopened = record(record(after("fatal"), "probe", T + 30), outcome, T + 35)

    assert decide(reopened, T + 64) == "refuse"
    assert decide(reopened, T + 65) == "probe"


def test_breaker__probe_nobody_reports_on__is_given_to_another_caller() -> None:
    probing = record(after("fatal"), "probe", T + 30)

    assert decide(probing, T + 150) == "probe"


def test_breaker__late_failure_while_open__does_not_lengthen_the_pause() -> None:
    late = record(after("fatal"), "failure", T + 29)

    assert decide(late, T + 30) == "probe"


@given(st.lists(st.tuples(st.sampled_from(["success", "failure", "fatal", "unrelated"]), st.floats(0, 500))))
def test_breaker__any_history__is_never_shut_for_good(history: list[tuple[Outcome, float]]) -> None:
    state, now = CLOSED, T
    for outcome, pause in history:
        now += pause
        if decide(state, now) == "probe":
            state = record(state, "probe", now)
        state = record(state, outcome, now)

    assert decide(state, now + 120) in ("allow", "probe")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("authentication", "fatal"),
        ("payment_required", "fatal"),
        ("permission", "fatal"),
        ("not_found", "fatal"),
        ("url_refused", "fatal"),
        ("rate_limited", "failure"),
        ("server_error", "failure"),
        ("timeout", "failure"),
        ("connection", "failure"),
        ("invalid_response", "failure"),
        ("bad_request", "unrelated"),
        ("context_length", "unrelated"),
    ],
)
def test_outcome_of__error__tells_whose_fault_it_is(code: str, outcome: Outcome) -> None:
    assert outcome_of(call_error(code)) == outcome  # type: ignore[arg-type]  # each of the literal's values


def test_outcome_of__no_error__is_a_success() -> None:
    assert outcome_of(None) == "success"
