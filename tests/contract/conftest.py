"""The generated client against the running service, and the API in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from compaction_service.local.stack import Stack
from tests.conftest import Member
from tests.contract.sdk import Sdk, generate
from tests.model_server import Control, running


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The generated package."""
    return generate(tmp_path_factory.mktemp("client") / "out")


@pytest.fixture
def make_sdk(package: ModuleType, live: Stack) -> Iterator[Callable[[str], Sdk]]:
    """Opens the generated client with a key."""
    opened: list[Sdk] = []

    def make(key: str) -> Sdk:
        opened.append(Sdk(package, live.base_url, key))
        return opened[-1]

    yield make
    for sdk in opened:
        sdk.client.get_httpx_client().close()


@pytest.fixture
def sdk(make_sdk: Callable[[str], Sdk], tenant: Member) -> Sdk:
    """The generated client of the test's tenant."""
    return make_sdk(tenant.key)


@pytest.fixture(scope="session")
def model_server() -> Iterator[Control]:
    """A scripted model."""
    with running() as server:
        yield server
