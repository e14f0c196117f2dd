from __future__ import annotations

from tests.inprocess import clock, model, models, service

__all__ = ["clock", "model", "models", "service"]
