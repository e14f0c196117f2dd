"""The app's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        from compaction_service import checks  # noqa: F401  (registers the system checks)
