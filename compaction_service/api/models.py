"""Answers kept for clients that repeat a POST."""

from __future__ import annotations

from django.db import models

from tenants.scope import TenantModel


class IdempotencyKey(TenantModel):
    """The answer of a POST, kept for a day, found again by the client's Idempotency-Key."""

    pk = models.CompositePrimaryKey("tenant_id", "key")
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField(max_length=32, help_text="SHA-256 of method, path, query and body.")
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict, help_text="Those of the answer that a repeat gives again.")
    body = models.TextField(help_text="JSON text; encrypted where the answer holds a secret.")
    encrypted = models.BooleanField(default=False)
    conversation_id = models.UUIDField(null=True, help_text="Whose text the answer may hold; an erasure deletes it.")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "api_idempotency"
        indexes = [
            models.Index(fields=["created_at"], name="api_idempotency_age"),
            models.Index(
                fields=["tenant", "conversation_id"],
                name="api_idempotency_conversation",
                condition=models.Q(conversation_id__isnull=False),
            ),
        ]
