"""The local stack as a Django app: it has commands and no models."""

from __future__ import annotations

from django.apps import AppConfig


class LocalConfig(AppConfig):
    name = "compaction_service.local"
    label = "local"
