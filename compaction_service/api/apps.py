"""The app's name for Django."""

from __future__ import annotations

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "compaction_service.api"
