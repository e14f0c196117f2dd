from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_service.llm.errors import CODES, call_error
from compaction_service.llm.retry import RetryPolicy, next_delay

RNG = random.Random(1)  # noqa: S311  # jitter, not a secret
FAILED = call_error("server_error", 500)


@given(attempt=st.integers(1, 4), elapsed=st.floats(0, 40), rng=st.randoms(use_true_random=False))
def test_next_delay__transient_error__fits_under_the_deadline_or_is_none(
    attempt: int, elapsed: float, rng: random.Random
) -> None:
    delay = next_delay(attempt, FAILED, 1000.0, 1000.0 + elapsed, rng)

    if delay is None:
        assert elapsed + 0.5 * 2 ** (attempt - 1) * 1.5 >= 29.9
    else:
        assert 0.25 <= delay <= 12.0
        assert elapsed + delay < 30.1


@pytest.mark.parametrize("code", CODES)
def test_next_delay__permanent_error__gives_up(code: str) -> None:
    error = call_error(code)  # type: ignore[arg-type]  # each of the literal's values

    assert (next_delay(1, error, 0.0, 0.0, RNG) is None) is not error.transient


def test_next_delay__fifth_attempt_failed__gives_up() -> None:
    assert next_delay(4, FAILED, 0.0, 1.0, RNG) is not None
    assert next_delay(5, FAILED, 0.0, 1.0, RNG) is None


def test_next_delay__retry_after_that_fits__is_waited_for() -> None:
    assert next_delay(1, call_error("rate_limited", 429, 20.0), 0.0, 1.0, RNG) == 20.0


def test_next_delay__retry_after_beyond_the_deadline__gives_up() -> None:
    assert next_delay(1, call_error("rate_limited", 429, 29.5), 0.0, 1.0, RNG) is None


def test_next_delay__retry_after_of_zero__still_backs_off() -> None:
    delay = next_delay(3, call_error("rate_limited", 429, 0.0), 0.0, 1.0, RNG)

    assert delay is not None
    assert delay >= 1.0


def test_next_delay__other_policy__is_followed() -> None:
    policy = RetryPolicy(attempts=2, total=300.0)

    assert next_delay(1, call_error("rate_limited", 429, 120.0), 0.0, 1.0, RNG, policy) == 120.0
    assert next_delay(2, FAILED, 0.0, 1.0, RNG, policy) is None
