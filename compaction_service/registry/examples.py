"""Examples of the OpenAPI document."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

MODEL = OpenApiExample(
    "A model",
    response_only=True,
    value={
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
        "updated_at": "2026-01-02T09:00:00Z",
    },
)
MODELS = OpenApiExample("The last page", response_only=True, value={"data": [MODEL.value], "next_cursor": None})
OVERRIDE = OpenApiExample("A smaller window", request_only=True, value={"context_window": 64_000})
DRIFT = OpenApiExample("Nothing new", response_only=True, value={"added": 0, "changed": 0, "same": 3676, "absent": 0})
