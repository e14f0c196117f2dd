"""What all tests share: a migrated database, tenants, and the running service.

Nothing is rolled back: other processes must see what a test wrote. A test is alone because it makes its own tenant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import httpx
import hypothesis
import pytest
from django.core.management import call_command
from django.db import connections
from pytest_django import DjangoDbBlocker

from compaction_service.local.stack import Stack, running_stack
from tenants import services
from tenants.models import Scope, Tenant
from tenants.scope import platform_scope, tenant_scope
from tests.stack import DATA_DIR

# Machines are shared: a slow moment is no failure. Speed is measured by `make bench`.
hypothesis.settings.register_profile("shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("shared")


@dataclass(frozen=True)
class Member:
    """A tenant of one test, and its keys: one may do everything, one may only read."""

    tenant: Tenant
    key: str
    read_key: str

    @property
    def id(self) -> UUID:
        return self.tenant.id


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database as a deployment makes it, instead of pytest-django's own."""
    with django_db_blocker.unblock():
        call_command("setup_database", verbosity=0)
        yield
        connections.close_all()
        for alias in connections:
            connections[alias].close_pool()  # type: ignore[attr-defined]  # of the PostgreSQL backend


@pytest.fixture
def _django_db_helper(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Behind both `db` and the `django_db` mark: lets a test at the database, with real commits."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture
def make_tenant(db: None) -> Callable[[], Member]:
    """Makes tenants of this test's own."""

    def make() -> Member:
        with platform_scope():
            tenant = services.tenant_create(f"test-{uuid4()}")
        with tenant_scope(tenant.id):
            full = services.key_create(Scope.values, "full").secret
            read = services.key_create([Scope.READ], "read").secret
        return Member(tenant, full, read)

    return make


@pytest.fixture
def tenant(make_tenant: Callable[[], Member]) -> Member:
    """The test's tenant."""
    return make_tenant()


@pytest.fixture
def stranger(make_tenant: Callable[[], Member]) -> Member:
    """Another tenant, who must see nothing of the first."""
    return make_tenant()


@pytest.fixture(scope="session")
def live(pytestconfig: pytest.Config, django_db_setup: None) -> Iterator[Stack]:
    """The running service (web, worker and beat as processes), started by the first test that asks."""
    with running_stack(os.environ, pytestconfig.stash[DATA_DIR] / "live") as stack:
        yield stack


@pytest.fixture
def connect(live: Stack) -> Iterator[Callable[[str], httpx.Client]]:
    """Opens HTTP clients of the running service, each with a key: `connect(stranger.key)`."""
    clients: list[httpx.Client] = []

    def open_client(key: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"}
        clients.append(httpx.Client(base_url=f"{live.base_url}/v1", headers=headers, timeout=70))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture
def api(connect: Callable[[str], httpx.Client], tenant: Member) -> httpx.Client:
    """The running service as the test's tenant sees it, below /v1."""
    return connect(tenant.key)
