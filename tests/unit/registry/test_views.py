"""`/v1/models`."""

from __future__ import annotations

import pytest
from django.test import Client

from compaction_service.registry.models import Model


def test_models_list__pages__cover_the_registry_once(client: Client, registry: None) -> None:
    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        body = client.get(f"/v1/models?limit=250{cursor and f'&cursor={cursor}'}").json()
        names += [model["name"] for model in body["data"]]
        cursor = body["next_cursor"]
    assert len(names) == len(set(names)) == Model.objects.count()


def test_models_list__q__filters(client: Client, registry: None) -> None:
    body = client.get("/v1/models", {"q": "claude-sonnet-4-5"}).json()
    assert {"claude-sonnet-4-5"} <= {model["name"] for model in body["data"]}
    assert all("claude-sonnet-4-5" in model["name"] for model in body["data"])


def test_models_get__plain_name__shows_everything_known(client: Client, registry: None) -> None:
    body = client.get("/v1/models/gpt-4o").json()
    assert body.pop("updated_at").endswith("Z")
    assert body == {
        "name": "gpt-4o",
        "provider": "openai",
        "context_window": 128_000,
        "max_output": 16_384,
        "tokenizer": "o200k_base",
        "method": "exact",
        "factor": 1.0,
        "input_price": 0.0000025,
        "output_price": 0.00001,
        "default_limit": 102_400,
        "source": "litellm",
        "overridden": [],
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("azure/gpt-4o", "azure/gpt-4o"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("OPENAI/GPT-4o", "gpt-4o"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "vertex_ai/claude-sonnet-4-5@20250929"),
    ],
)
def test_models_get__name_with_slashes__works(client: Client, registry: None, path: str, name: str) -> None:
    assert client.get(f"/v1/models/{path}").json()["name"] == name


def test_models_get__override__says_so(client: Client, own_model: str) -> None:
    body = client.get(f"/v1/models/{own_model}").json()
    assert (body["source"], body["overridden"], body["context_window"]) == ("override", ["context_window"], 10_000)


def test_models_get__unknown__is_404_with_the_nearest_names(client: Client, registry: None) -> None:
    response = client.get("/v1/models/gtp-4o")
    assert response.status_code == 404
    assert response.json()["errors"][0]["code"] == "model_not_found"
    assert response.json()["nearest"][0] == "gpt-4o"
    assert len(response.json()["nearest"]) <= 5


@pytest.mark.parametrize("path", ["%00", "a%00b", "%ED%A0%80", "..%2F..", "%F0%9F%98%80" * 300, "a" * 5000])
def test_models_get__hostile_name__is_404(client: Client, registry: None, path: str) -> None:
    assert client.get(f"/v1/models/{path}").status_code == 404


def test_models__without_a_key__is_401(registry: None) -> None:
    assert Client().get("/v1/models").status_code == 401
