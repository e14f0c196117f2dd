"""litellm's price map, read from the file in its wheel; importing litellm would cost seconds and 200 MB."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

FILE = "model_prices_and_context_window_backup.json"
PRICE_PLACES = 12  # of a price per token in USD
_MODES = ("chat", "responses")  # what can hold a conversation
_PRICE_STEP = Decimal(1).scaleb(-PRICE_PLACES)
_DEAREST = Decimal(100)  # a price per token above this is a mistake in the file


class CatalogueMissingError(RuntimeError):
    """litellm's file is not there or cannot be read: the installation is broken."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One model as litellm lists it. Tokens; USD per token. None: not told."""

    name: str
    provider: str
    context_window: int | None
    max_output: int | None
    input_price: Decimal | None
    output_price: Decimal | None


def read() -> list[Entry]:
    """All models of mode chat or responses, by name; those without a window too. Raises CatalogueMissingError."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise CatalogueMissingError("litellm is not installed.")
    try:
        listed = json.loads((Path(spec.origin).parent / FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise CatalogueMissingError(f"litellm's {FILE} cannot be read.") from error
    return parse(listed)


def parse(listed: dict[str, Any]) -> list[Entry]:
    """The entries of a price map that can hold a conversation, by name."""
    return [
        Entry(
            name=name,
            provider=str(facts.get("litellm_provider") or ""),
            context_window=_tokens(facts.get("max_input_tokens")) or _tokens(facts.get("max_tokens")),
            max_output=_tokens(facts.get("max_output_tokens")),
            input_price=_price(facts.get("input_cost_per_token")),
            output_price=_price(facts.get("output_cost_per_token")),
        )
        for name, facts in sorted(listed.items())
        if isinstance(facts, dict) and facts.get("mode") in _MODES
    ]


def _tokens(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and 1 <= value < 2**31 else None


def _price(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _DEAREST:
        return None
    return Decimal(repr(value)).quantize(_PRICE_STEP)  # repr: the digits of the file, without the float's tail
