"""What is used and what it costs: every call to a model, and what was stored by day."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from compaction_service.ids import uuid7
from tenants.scope import TenantModel

OUTCOMES = ("applied", "skipped", "irreducible", "failed", "cancelled", "stale")  # how a compaction ends


class Call(TenantModel):
    """One call to a model, counted whatever became of it: failed calls and late answers cost money too."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation_id = models.UUIDField()
    compaction_id = models.UUIDField()
    pass_number = models.PositiveSmallIntegerField()
    model = models.CharField(max_length=255)
    status = models.CharField(max_length=10)  # ok | failed | late
    error = models.CharField(max_length=64, blank=True, default="")
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    duration_ms = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "model call"
        indexes: ClassVar = [
            models.Index(fields=["tenant", "created_at"], name="call_by_time"),
            models.Index(fields=["conversation_id"], name="call_by_conversation"),
            models.Index(fields=["status", "id"], condition=~models.Q(status="ok"), name="call_not_ok"),
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.status}"


class Day(TenantModel):
    """What one conversation used on one day (UTC), by model: sums that outlive the rows they count.

    Messages and compactions are under the conversation's model, calls under the model that was called. The rows stay
    when the conversation is erased: they hold its id, which names nothing then, and numbers. No two conversations write
    one row, so no append waits for another.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation_id = models.UUIDField()
    day = models.DateField()
    model = models.CharField(max_length=255)
    messages = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)  # raw, appended
    applied = models.PositiveIntegerField(default=0)  # compactions that ended so, and so on
    skipped = models.PositiveIntegerField(default=0)
    irreducible = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    stale = models.PositiveIntegerField(default=0)
    tokens_saved = models.BigIntegerField(default=0)  # raw; what applied compactions replaced, less their summaries
    calls = models.PositiveIntegerField(default=0)
    llm_tokens_in = models.PositiveBigIntegerField(default=0)
    llm_tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=18, decimal_places=8, default=0)  # US dollars, as far as prices are known

    class Meta:
        verbose_name = "daily sum"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "day", "conversation_id", "model"], name="day_conversation_model")
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id} {self.day} {self.model}"


class Month(TenantModel):
    """What a tenant with a budget spent in a calendar month (UTC); the lock of its reservations (budgets.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    month = models.DateField()  # its first day
    cost = models.DecimalField(max_digits=18, decimal_places=8, default=0)  # US dollars
    exhausted_at = models.DateTimeField(null=True)  # when the budget first did not pay a call

    class Meta:
        verbose_name = "budget"
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "month"], name="month_of_tenant")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.month:%Y-%m}"


class Reservation(TenantModel):
    """Money put aside for a call that is being made; gone when it ends, worth nothing after `until`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    month = models.DateField()
    amount = models.DecimalField(max_digits=18, decimal_places=8)
    until = models.DateTimeField()  # by the database's clock

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tenant", "month"], name="reservation_of_month")]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.amount}"
