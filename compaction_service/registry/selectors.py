"""Reads of the registry."""

from __future__ import annotations

import time

from django.db.models import Q, QuerySet

from compaction_service.registry import lookup
from compaction_service.registry.models import Model
from compaction_service.registry.specs import ModelSpec, UnknownModel, unlisted

_CACHE_SECONDS = 30.0  # how long a process may use a row after it was changed elsewhere
_CACHE_SIZE = 1024
_cache: dict[str, tuple[float, ModelSpec | None]] = {}


def model_get(name: str) -> ModelSpec:
    """The model that `name` means, as `model_known`. Raises UnknownModel with the nearest names."""
    spec = model_known(name)
    if spec is None:
        raise model_unknown(name)
    return spec


def model_known(name: str) -> ModelSpec | None:
    """The model that `name` means: the row of that name, else the nearest spelling of it (lookup.py); None without any.

    One indexed query, or none for half a minute after, for an unknown name too: requests live with those.
    """
    cached = _cache.get(name)
    if cached and cached[0] > time.monotonic():
        return cached[1]
    found = model_find(name)
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    spec = found.spec if found else None
    _cache[name] = time.monotonic() + _CACHE_SECONDS, spec
    return spec


def model_find(name: str) -> Model | None:
    """The row that `name` means, fresh from the database; None for an unknown one."""
    if not _storable(name):
        return None
    rows = {row.name: row for row in Model.objects.filter(Q(name=name) | Q(key=lookup.key(name)))}
    chosen = lookup.best(
        name, (lookup.Candidate(row.name, row.provider, row.context_window is not None) for row in rows.values())
    )
    return rows[chosen.name] if chosen else None


def model_unknown(name: str) -> UnknownModel:
    """The error for a name that no model has, with the names that resemble it. Reads all names."""
    return UnknownModel(name, tuple(lookup.nearest(name, list(Model.objects.values_list("name", flat=True)))))


def summarizer_spec(name: str) -> ModelSpec:
    """Like model_get for a summariser, which may be any name: an unknown one has a window of 32,000 and no price; so
    has a known one without a window (semantics 2)."""
    spec = model_known(name)
    return spec if spec is not None and spec.context_window is not None else unlisted(name)


def model_list(q: str = "") -> QuerySet[Model]:
    """All models; with `q`, those whose name or provider holds it, in any case."""
    if not q:
        return Model.objects.all()
    if not _storable(q):
        return Model.objects.none()
    return Model.objects.filter(Q(name__icontains=q) | Q(provider__icontains=q))


def forget() -> None:
    """Drops what this process has cached."""
    _cache.clear()


def _storable(text: str) -> bool:
    """Whether PostgreSQL can be asked about it: no NUL, no lone surrogate; and no longer than a name can be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return 0 < len(text) <= lookup.MAX_NAME and "\0" not in text
