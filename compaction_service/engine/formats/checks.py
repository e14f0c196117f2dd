"""Checks that message formats share: each returns the value it was asked for or raises a MessageError."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compaction_service.engine.types import JSON, MessageError


def invalid(detail: str, attr: str) -> MessageError:
    return MessageError("invalid", detail, attr)


def other_format(what: str, theirs: str, ours: str, attr: str) -> MessageError:
    """Something of the other format: stored, it would be no call, result or thinking, and no provider would take it."""
    return invalid(
        f"{what} is of the {theirs} format, and the `format` here is {ours}: it is fixed when a conversation is "
        f"created, so create one with `format: {theirs}`.",
        attr,
    )


def object_(value: JSON, what: str, attr: str) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise invalid(f"{what} must be a JSON object.", attr)
    return value


def items(value: JSON, what: str, attr: str) -> list[JSON]:
    """A list that is not empty."""
    if not isinstance(value, list) or not value:
        raise invalid(f"{what} must be a list with at least one item, or be left out.", attr)
    return value


# The calls of the newest message lie in the conversation's row, which every append writes; providers allow far fewer.
MOST_CALLS = 1000


def few_calls(count: int, attr: str) -> None:
    """Refuses more parallel calls than a message may make."""
    if count > MOST_CALLS:
        raise invalid(f"A message makes {MOST_CALLS} calls at most.", attr)


def member(owner: Mapping[str, JSON], key: str, wanted: str, attr: str) -> JSON:
    """The value under a required key; `wanted` says what it may be."""
    if key not in owner:
        raise MessageError("required", f"`{key}` is required: {wanted}.", f"{attr}.{key}")
    return owner[key]


def string(owner: Mapping[str, JSON], key: str, attr: str, *, blank: bool = True) -> str:
    wanted = "a string" if blank else "a string that is not empty"
    value = member(owner, key, wanted, attr)
    if not isinstance(value, str) or not (value or blank):
        raise invalid(f"`{key}` must be {wanted}.", f"{attr}.{key}")
    return value


def child(owner: Mapping[str, JSON], key: str, attr: str) -> dict[str, JSON]:
    return object_(member(owner, key, "a JSON object", attr), f"`{key}`", f"{attr}.{key}")


def choice(owner: Mapping[str, JSON], key: str, allowed: Collection[str], attr: str) -> str:
    wanted = "one of " + ", ".join(allowed)
    value = member(owner, key, wanted, attr)
    if not isinstance(value, str) or value not in allowed:
        raise invalid(f"`{key}` must be {wanted}.", f"{attr}.{key}")
    return value
