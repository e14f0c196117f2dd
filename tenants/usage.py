"""What a tenant uses of its limits. The apps that count it register a source; this app knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Source = Callable[[], dict[str, Any]]

_sources: list[Source] = []


def usage_source(source: Source) -> Source:
    """Decorator: `source()` gives figures of the tenant in scope, under names of its own. Register in `ready()`."""
    _sources.append(source)
    return source


def usage() -> dict[str, Any]:
    """All figures of the tenant in scope."""
    return {name: value for source in _sources for name, value in source().items()}
