"""A registry filled from litellm's file, once: it belongs to no tenant, so all tests share it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client

from compaction_service.registry import selectors, services
from tenants.scope import platform_scope
from tests.conftest import Member


@pytest.fixture
def registry(db: None) -> Iterator[None]:
    """litellm's models in the table, and nothing cached."""
    with platform_scope():
        services.sync()
    selectors.forget()
    yield
    selectors.forget()


@pytest.fixture
def own_model(registry: None) -> Iterator[str]:
    """The name of a model that only this test has, with a window of 10,000."""
    name = f"acme-{uuid4().hex}"
    with platform_scope():
        services.override_set(name, context_window=10_000)
    yield name
    with platform_scope():
        services.override_clear(name)


@pytest.fixture
def client(tenant: Member) -> Client:
    """The API as the test's tenant sees it, in this process."""
    return Client(headers={"Authorization": f"Bearer {tenant.read_key}"}, raise_request_exception=False)
