"""Compactions without a model, many in a row: what stays, and what the log says of what does not."""

from __future__ import annotations

from typing import Any

from tests.inprocess import Service


def wish(number: int) -> str:
    return f"For module number {number} use the flag FLAG_{number}_X and retention {3 * number} days."


def turns(first: int, size: int, answer: str) -> list[dict[str, Any]]:
    return [
        message
        for number in range(first, first + size)
        for message in (
            {"role": "user", "content": wish(number)},
            {"role": "assistant", "content": answer.format(number)},
        )
    ]


def test_rolling__six_requests_a_round__all_are_in_the_summary_and_none_is_told_as_dropped(service: Service) -> None:
    path = service.create(model="gpt-4o", policy={"preserve_recent_turns": 0, "keep_last_user_request": False})
    entry: Any = None
    for first in range(1, 31, 6):
        service.append(path, *turns(first, 6, "Understood. Module {0} is built with that flag from now on."))
        entry = service.compact(path)
        assert (entry["outcome"], entry["method"]) == ("applied", "extractive")
        assert not [one for one in entry["dropped_content"] if one["kind"] == "request"]
    assert all(entry["summary"].count(wish(number)) == 1 for number in range(1, 31))
    assert entry["tokens_out"] < 4096 / 2


def test_rolling__bound_too_small__what_older_summaries_had_is_told_as_dropped(service: Service) -> None:
    policy = {"preserve_recent_turns": 0, "keep_last_user_request": False, "summary_max_tokens": 120}
    path = service.create(model="gpt-4o", policy=policy)
    known: set[int] = set()
    for first in range(1, 25, 6):
        service.append(path, *turns(first, 6, "Module {0} was built with that. " * 4))
        entry = service.compact(path)
        told = {one["text"] for one in entry["dropped_content"]}
        for number in {*known, *range(first, first + 6)}:
            flag = f"FLAG_{number}_X"
            assert (flag in entry["summary"]) is (flag not in told)
        known = {number for number in range(1, first + 6) if f"FLAG_{number}_X" in entry["summary"]}


def test_dropped__request_that_is_carried__is_not_told(service: Service) -> None:
    policy = {"preserve_recent_turns": 0, "keep_first_user_request": True, "summary_max_tokens": 64}
    path = service.create(model="gpt-4o", policy=policy)
    service.append(path, *turns(1, 12, "Module {0} was built with that. " * 8))
    entry = service.compact(path)
    dropped = {one["position"] for one in entry["dropped_content"]}
    assert dropped
    assert 1 not in dropped
    assert wish(1) in str(service.context(path)["messages"])


def test_merge__without_a_model__newest_and_open_stay_and_the_rest_is_told(service: Service) -> None:
    policy = {"preserve_recent_turns": 0, "keep_last_user_request": False, "strategy": "hierarchical"}
    path = service.create(model="gpt-4o", policy=policy)
    entry: Any = None
    for first in range(1, 37, 6):
        service.append(path, *turns(first, 6, "Module {0} was built with that, and all went as it always does."))
        entry = service.compact(path)
    (one,) = service.context(path)["summaries"]
    node = service.get(f"summaries/{one}")
    assert node["level"] == 1
    text = node["text"]
    kept = [number for number in range(1, 37) if wish(number) in text]
    assert max(kept) > 30
    assert len(kept) >= 6
    told = {one["text"] for one in entry["dropped_content"]}
    assert all(f"FLAG_{number}_X" in told for number in range(1, 37) if f"FLAG_{number}_X" not in text)


def test_language__other_than_the_conversation__is_told_in_the_notes(service: Service) -> None:
    said = "The harbour is closed at night, and nobody may go there before the gate is open again."
    for wanted, notes in (("German", [{"language_not_followed": "German"}]), ("English", [])):
        policy = {"preserve_recent_turns": 0, "keep_last_user_request": False, "language": wanted}
        path = service.create(model="gpt-4o", policy=policy)
        service.append(path, *turns(1, 8, f"{said} It was so in year {{0}} as well, and it will be so for long. " * 3))
        assert service.compact(path)["notes"] == notes
