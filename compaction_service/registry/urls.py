"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from compaction_service.registry import views

urlpatterns = [
    path("models", views.ModelsView.as_view(), name="models"),
    path("models/<path:name>", views.ModelView.as_view(), name="model"),
]
