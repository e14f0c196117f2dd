from __future__ import annotations

from typing import Any

import pytest
from django.test import Client


@pytest.fixture(autouse=True)
def _views(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.unit.api.views"


@pytest.fixture
def client(tenant: Any) -> Client:
    """The views of this folder as the test's tenant sees them, in this process."""
    return Client(headers={"Authorization": f"Bearer {tenant.key}"}, raise_request_exception=False)


@pytest.fixture
def anonymous() -> Client:
    return Client(raise_request_exception=False)
