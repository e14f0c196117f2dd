from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from compaction_service.llm import client
from compaction_service.llm.client import Completion, CompletionRequest
from tests.model_server import Control, running

Call = Callable[..., Completion]


@pytest.fixture(scope="session")
def server() -> Iterator[Control]:
    with running() as control:
        yield control


@pytest.fixture(scope="session")
def litellm_loaded() -> None:
    client.preload()


@pytest.fixture
def model() -> str:
    """A name no other test uses."""
    return f"scripted-{uuid.uuid4().hex}"


@pytest.fixture
def call(server: Control, model: str, litellm_loaded: None) -> Call:
    """Script the test's model, then call it."""

    def call(behaviour: str | Sequence[str] | None = None, **fields: Any) -> Completion:
        if behaviour is not None:
            server.script(model, behaviour)
        given: dict[str, Any] = {
            "model": model,
            "system": "You summarise.",
            "user": "Hello.",
            "max_tokens": 500,
            "timeout": 20.0,
            "api_base": server.base_url,
            "api_key": server.key,
            "allow_local": True,
        }
        return client.complete(CompletionRequest(**{**given, **fields}))

    return call
