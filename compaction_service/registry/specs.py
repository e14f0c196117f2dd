"""What the rest of the service knows of a model: plain values, no database."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from compaction_service.tokens.families import family, tokenizer_for
from compaction_service.tokens.messages import Counter, Method, counter_for

UNKNOWN_SUMMARIZER_WINDOW = 32_000  # semantics 2

WindowSource = Literal["registry", "override", "request"]


class UnknownModel(LookupError):  # noqa: N818  (a name of the domain; `nearest` makes it more than an error)
    """No model of the registry has this name; `nearest` are up to five that resemble it."""

    def __init__(self, name: str, nearest: tuple[str, ...]) -> None:
        super().__init__(name, nearest)
        self.name = name
        self.nearest = nearest


class WindowUnknown(LookupError):  # noqa: N818
    """The registry lists the model without a window: the conversation must be given one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model: windows in tokens, prices in USD per token; None: not told."""

    name: str  # as the registry lists it, which may not be as it was asked for
    provider: str
    context_window: int | None
    max_output: int | None
    tokenizer: str
    factor: float
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    window_source: WindowSource = "registry"

    @property
    def counter(self) -> Counter:
        """Counts raw tokens for this model (semantics 3)."""
        return counter_for(self.tokenizer, self.factor)

    @property
    def method(self) -> Method:
        """How its tokens are counted before any calibration."""
        return self.counter.method


@dataclass(frozen=True, slots=True)
class Window:
    """A model's input window for one conversation, and who said so."""

    tokens: int
    source: WindowSource


def window_for(conversation_window: int | None, model: ModelSpec) -> Window:
    """The window that counts: the one given with the conversation, else the registry's. Raises WindowUnknown."""
    if conversation_window is not None:
        return Window(conversation_window, "request")
    if model.context_window is None:
        raise WindowUnknown(model.name)
    return Window(model.context_window, model.window_source)


def cost(model: ModelSpec, tokens_in: int, tokens_out: int) -> Decimal | None:
    """USD of one call; None where a price that it needs is not told."""
    total = Decimal(0)
    for tokens, price in ((tokens_in, model.input_price), (tokens_out, model.output_price)):
        if tokens and price is None:
            return None
        total += tokens * (price or 0)
    return total


def unlisted(name: str) -> ModelSpec:
    """A model that only its name is known of: counted by its family, with the window of an unknown summariser."""
    tokenizer = tokenizer_for(name)
    return ModelSpec(name, "", UNKNOWN_SUMMARIZER_WINDOW, None, tokenizer, family(tokenizer).factor)
