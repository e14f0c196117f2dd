"""Paths below /v1."""

from __future__ import annotations

from django.urls import path

from tenants import platform_views, views

urlpatterns = [
    path("tenant", views.TenantSettingsView.as_view()),
    path("api-keys", views.KeysView.as_view()),
    path("api-keys/<uuid:key_id>", views.KeyView.as_view()),
    path("api-keys/<uuid:key_id>/rotate", views.KeyRotateView.as_view()),
    path("audit", views.AuditView.as_view()),
    path("admin/tenants", platform_views.TenantsView.as_view()),
    path("admin/tenants/<uuid:tenant_id>", platform_views.TenantView.as_view()),
    path("admin/tenants/<uuid:tenant_id>/export", platform_views.TenantExportView.as_view()),
]
