"""The cost of a page does not depend on how many rows it shows, and nothing counts a table."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.integration.admin.conftest import Made

# What every page costs: session, user, and begin and end of transactions are not counted.
LISTS = {
    "/admin/compactions/compaction/": 4,
    "/admin/compactions/summary/": 4,
    "/admin/conversations/conversation/": 4,
    "/admin/tenants/tenant/": 3,
    "/admin/tenants/apikey/": 4,
    "/admin/usage/call/": 4,
    "/admin/usage/day/": 4,
    "/admin/usage/month/": 4,
    "/admin/compactions/work/": 5,
    "/admin/compactions/breaker/": 4,
}
TEXTS = ("body", "summary", "sections", "policy", "system", "tools", "text")


def queries(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connections["platform"]) as captured:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in captured.captured_queries if query["sql"].startswith(("SELECT", "select"))]


@pytest.mark.parametrize("path", LISTS)
def test_list__more_rows__no_more_queries_no_counts_no_texts(
    root: Client, make: Callable[..., Made], path: str
) -> None:
    for _ in range(3):
        made = make()
        made.compact(up_to=4)
        made.compact(up_to=8)
    asked = queries(root, path)
    assert len(asked) <= LISTS[path], asked
    assert not [sql for sql in asked if sql.startswith("SELECT COUNT")]
    for name in TEXTS:
        assert not [sql for sql in asked if f'"{name}"' in sql and path != "/admin/tenants/tenant/"], name


@pytest.mark.parametrize(("page", "most"), [("compactions/compaction", 11), ("conversations/conversation", 11)])
def test_detail__longer_conversation__no_more_queries(
    root: Client, make: Callable[..., Made], page: str, most: int
) -> None:
    made = make()
    compactions = [made.compact(up_to=position) for position in (4, 8, 12)]
    row = compactions[-1] if page.startswith("compactions") else made.conversation
    asked = queries(root, f"/admin/{page}/{row}/change/")
    assert len(asked) <= most, "\n".join(asked)
