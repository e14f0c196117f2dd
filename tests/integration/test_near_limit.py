"""`context.near_limit`: once for each time a context comes to 90 % of its limit from below."""

from __future__ import annotations

from typing import Any

from compaction_service.api.metrics import NEAR_LIMIT
from compaction_service.conversations.models import Conversation
from tenants.scope import tenant_scope
from tests.inprocess import Service

LIMIT = 1000


def words(count: int, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": "word " * count}


def crossings() -> int:
    [metric] = NEAR_LIMIT.collect()
    return int(next(one.value for one in metric.samples if one.name.endswith("_total")))


def near(service: Service, path: str) -> bool:
    with tenant_scope(service.tenant_id):
        return Conversation.objects.get(id=path.removeprefix("conversations/")).near_limit


def test_near_limit__up_and_down_and_up__is_told_once_per_crossing(service: Service) -> None:
    policy = {"max_tokens": LIMIT, "target": 0, "keep_last_user_request": False}
    path = service.create(policy=policy)
    before = crossings()

    service.append(path, words(850))
    assert (crossings() - before, near(service, path)) == (0, False)
    service.append(path, words(60, "assistant"))
    assert (crossings() - before, near(service, path)) == (1, True)
    service.append(path, words(200))
    service.append(path, words(5, "assistant"))
    assert (crossings() - before, near(service, path)) == (1, True)

    entry = service.compact(path, preserve_recent_turns=0)
    assert (crossings() - before, near(service, path)) == (1, False)
    service.post(f"compactions/{entry['id']}/revert", status=200)
    assert (crossings() - before, near(service, path)) == (2, True)


def test_near_limit__a_policy_that_moves_the_limit__crosses_too(service: Service) -> None:
    path = service.create()
    service.append(path, words(920))
    before = crossings()

    service.patch(path, {"policy": {"max_tokens": LIMIT}})
    service.patch(path, {"policy": {"max_tokens": LIMIT + 10}})
    assert (crossings() - before, near(service, path)) == (1, True)
    service.patch(path, {"policy": {"max_tokens": 10 * LIMIT}})

    assert (crossings() - before, near(service, path)) == (1, False)


def test_near_limit__an_append_that_is_refused__is_not_told(service: Service) -> None:
    path = service.create(policy={"max_tokens": LIMIT})
    before = crossings()

    service.post(f"{path}/messages", {"messages": [words(950), {"role": "tool", "content": "x"}]}, status=400)

    assert (crossings() - before, near(service, path)) == (0, False)


def test_near_limit__an_erasure_that_takes_a_summary__crosses_too(service: Service) -> None:
    path = service.create(policy={"max_tokens": LIMIT, "target": 0, "keep_last_user_request": False})
    service.append(path, words(10), words(10, "assistant"), words(900), words(60, "assistant"))
    service.compact(path, preserve_recent_turns=0)
    before = crossings()
    assert not near(service, path)

    service.call("DELETE", f"{path}/messages/1")  # the summary was made of it, too: the rest is live again

    assert (crossings() - before, near(service, path)) == (1, True)
    service.call("DELETE", f"{path}/messages/3")
    assert (crossings() - before, near(service, path)) == (1, False)


def test_near_limit__a_pin_that_shows_a_covered_message__crosses_too(service: Service) -> None:
    path = service.create(policy={"max_tokens": LIMIT, "target": 0, "keep_last_user_request": False})
    service.append(path, words(900), words(60, "assistant"))
    service.compact(path, preserve_recent_turns=0)
    before = crossings()

    service.patch(f"{path}/messages/1", {"pinned": True})

    assert (crossings() - before, near(service, path)) == (1, True)
