"""Tenants and their keys. A key is `ck_<prefix>_<secret>`; only an HMAC of it is stored (tenants/keys.py)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from compaction_service.ids import uuid7
from tenants.scope import TenantModel


class Scope(models.TextChoices):
    """What a key may do. `write` includes `read`; `admin` includes both."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Tenant(models.Model):
    """A customer: the unit of isolation, of policy and of limits."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, unique=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.ACTIVE)
    policy = models.JSONField(default=dict, blank=True, help_text="Policy fields set for all conversations.")
    summarizer = models.JSONField(
        default=dict, blank=True, help_text="model, fallback_models, api_base, extra_headers of the summarizer."
    )
    summarizer_key = models.BinaryField(null=True, help_text="The provider's API key, encrypted (tenants/crypto.py).")
    redaction = models.BooleanField(default=False, help_text="Redact what looks like a secret before a model sees it.")
    retention_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="Erase conversations untouched for this many days; empty: keep."
    )
    limits = models.JSONField(default=dict, blank=True, help_text="Overrides of the limits (tenants/limits.py).")
    weight = models.PositiveSmallIntegerField(default=1, help_text="Share of the workers relative to other tenants.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(weight__gte=1), name="tenants_tenant_weight")]

    def __str__(self) -> str:
        return self.name


class KeyModel(models.Model):
    """What keys of tenants and of the platform share."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, blank=True, help_text="What the key is for.")
    prefix = models.CharField(max_length=16, unique=True, editable=False, help_text="The part a key is found by.")
    digest = models.BinaryField(max_length=32, help_text="HMAC-SHA256 of the whole key.")
    pepper = models.PositiveSmallIntegerField(editable=False, help_text="Number of the pepper of the digest.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="Written once a minute.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name or self.prefix


class ApiKey(TenantModel, KeyModel):
    """A tenant's key."""

    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))

    class Meta:
        indexes = [models.Index(fields=["tenant", "id"], name="tenants_apikey_tenant")]


class PlatformKey(KeyModel):
    """A key of `/v1/admin`. Only the platform role can read this table."""


class Role(models.TextChoices):
    """What a member may do in the admin; each includes the one before."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OWNER = "owner"


class Member(TenantModel):
    """A Django user who belongs to one tenant (tenants/members.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_manager_name = "unscoped"  # a form looks for a user's other membership over all tenants

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class AuditEvent(TenantModel):
    """Who did what to whose things (tenants/audit.py). Holds ids and names of fields, never content."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.CharField(max_length=40)
    actor = models.CharField(max_length=255)  # key:<name>, staff:<name>, platform key:<name>, service:<task>
    target = models.CharField(max_length=255, blank=True)  # <kind>:<id>
    changed = ArrayField(models.CharField(max_length=255), default=list)
    request_id = models.CharField(max_length=128, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "id"], name="tenants_audit_tenant")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"
