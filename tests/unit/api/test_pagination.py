from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import paginate
from tenants import services
from tenants.models import ApiKey
from tenants.scope import tenant_scope


@pytest.mark.parametrize("order", ["-id", "id", "prefix"])
@pytest.mark.parametrize("limit", ["1", "3", "7", "250"])
def test_paginate__walked_to_the_end__gives_every_row_once_in_order(tenant: Any, order: str, limit: str) -> None:
    with tenant_scope(tenant.id):
        for _ in range(5):
            services.key_create(["read"])
        expected = list(ApiKey.objects.order_by(order))
        seen: list[ApiKey] = []
        params = {"limit": limit}
        while True:
            page = paginate(ApiKey.objects.all(), params, order)
            seen += page.rows
            if page.next_cursor is None:
                break
            params["cursor"] = page.next_cursor
        assert seen == expected


def test_paginate__cursor_of_another_list__is_refused(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        cursor = paginate(ApiKey.objects.all(), {"limit": "1"}).next_cursor or ""
        with pytest.raises(ApiError) as raised:
            paginate(ApiKey.objects.all(), {"cursor": cursor}, "prefix")
    assert raised.value.attr == "cursor"


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cursor=st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9_-]{0,60}", fullmatch=True))
def test_paginate__any_other_text_for_a_cursor__is_a_400(tenant: Any, cursor: str) -> None:
    with tenant_scope(tenant.id), pytest.raises(ApiError) as raised:
        paginate(ApiKey.objects.all(), {"cursor": cursor})
    assert (raised.value.status_code, raised.value.attr) == (400, "cursor")


@pytest.mark.parametrize("limit", ["0", "251", "-1", "", "x", "1.0", " 5", "٣", "1_0", "9" * 5000])
def test_paginate__limit_out_of_range__is_a_400_and_not_clamped(tenant: Any, limit: str) -> None:
    with tenant_scope(tenant.id), pytest.raises(ApiError) as raised:
        paginate(ApiKey.objects.all(), {"limit": limit})
    assert (raised.value.status_code, raised.value.attr) == (400, "limit")
