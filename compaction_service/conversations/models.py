"""Conversations and their messages. Rules of who writes what, and under which lock: docs/design.md."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from compaction_service.fields import JSONText
from compaction_service.ids import uuid7
from tenants.scope import TenantModel


class Format(models.TextChoices):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class CompactionState(models.TextChoices):
    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"


class Conversation(TenantModel):
    """One agent's conversation: what the client gave, and the running state every hot request needs.

    The sums are raw tokens of the base encoding (`tokenizer`), kept by part so that no request recounts history;
    the meter multiplies them by `factor` (semantics 3). `revision` counts every write of the row, `version` every
    change of the context.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    external_id = models.CharField(max_length=255, null=True)  # noqa: DJ001 -- null: none given; unique when given
    model = models.CharField(max_length=255)
    format = models.CharField(max_length=16, choices=Format)
    system = models.TextField(null=True)  # noqa: DJ001 -- JSON text; null is the client's null
    tools = models.TextField(null=True)  # noqa: DJ001 -- JSON text
    policy = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    context_window = models.PositiveIntegerField(null=True)

    last_position = models.PositiveIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    turn_count = models.PositiveIntegerField(default=0)
    covered_to = models.PositiveIntegerField(default=0)
    carried = ArrayField(models.PositiveIntegerField(), default=list)
    ledger = JSONText(default=dict)  # engine.admit.Ledger: open calls and what may follow

    tokenizer = models.CharField(max_length=32)  # of all raw counts stored; another than the model's: being recounted
    factor = models.FloatField(default=1.0)
    calibrated = models.BooleanField(default=False)
    system_tokens = models.PositiveIntegerField(default=0)
    tools_tokens = models.PositiveIntegerField(default=0)
    summary_tokens = models.PositiveIntegerField(default=0)
    carried_tokens = models.PositiveIntegerField(default=0)
    tail_tokens = models.PositiveIntegerField(default=0)
    pending_tokens = models.PositiveIntegerField(default=0)  # of it: synthetic results of calls open amid the tail
    fixed_chars = models.PositiveIntegerField(default=0)  # of system and tools
    shown_chars = models.PositiveIntegerField(default=0)  # of summaries, carried and tail
    stored_tokens = models.PositiveBigIntegerField(default=0)  # of all originals

    masked_to = models.PositiveIntegerField(default=0)
    # Signed thinking: what stood before it up to this position, and in contexts of this version or older ones, is not
    # what is shown now (conversations/thinking.py).
    thinking_to = models.PositiveIntegerField(default=0)
    thinking_version = models.PositiveBigIntegerField(default=0)
    mask_pending = models.PositiveIntegerField(default=0)  # raw tokens that masking after the watermark could reclaim

    compaction_state = models.CharField(max_length=8, choices=CompactionState, default=CompactionState.IDLE)
    compaction_live = models.UUIDField(null=True)
    compaction_trigger = models.CharField(max_length=10, blank=True, default="")  # of the live one
    compaction_last = models.UUIDField(null=True)
    retry_from_tokens = models.PositiveIntegerField(null=True)  # threshold waits until so many can go from the context
    compact_tool = models.BooleanField(default=False)  # `tools` holds it (semantics 8)
    near_limit = models.BooleanField(default=False)  # at 90 % of the limit or more when last looked at (semantics 4)

    revision = models.PositiveBigIntegerField(default=0)
    version = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "external_id"], name="conversation_external_id"),
            # What tables below refer to, together (migration 0003): a row of one tenant never hangs on another's.
            models.UniqueConstraint(fields=["tenant", "id"], name="conversation_of_tenant"),
            models.CheckConstraint(
                condition=models.Q(covered_to__lte=models.F("last_position")), name="conversation_covered_to"
            ),
            models.CheckConstraint(
                condition=models.Q(compaction_state="idle", compaction_live__isnull=True)
                | ~models.Q(compaction_state="idle") & models.Q(compaction_live__isnull=False),
                name="conversation_compaction_state",
            ),
        ]
        indexes: ClassVar = [
            models.Index(  # the beginning of an external id, over all tenants
                fields=["external_id"],
                opclasses=["text_pattern_ops"],
                condition=models.Q(external_id__isnull=False),
                name="conversation_external_prefix",
            ),
        ]

    def __str__(self) -> str:
        return self.external_id or str(self.id)


class Message(TenantModel):
    """One provider message as it came. Immutable but for its flags; an erased one keeps its position.

    Its body is empty then, or the stub it left in an exchange: what a context shows is `selectors.messages_of`.
    """

    pk = models.CompositePrimaryKey("conversation", "position")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, db_index=False, db_constraint=False)
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16)
    body = models.TextField()  # JSON text
    calls = JSONText(default=list)  # [[id, name]]
    answers = JSONText(default=list)  # [[id, name, chars, saving, saving_chars]]
    request = models.BooleanField(default=False)
    turn = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField()  # raw
    chars = models.PositiveIntegerField()
    extra_tokens = models.PositiveIntegerField(default=0)  # synthetic results of abandoned calls
    thinking_tokens = models.PositiveIntegerField(default=0)  # saved by leaving its thinking out
    thinking_chars = models.PositiveIntegerField(default=0)
    masked = ArrayField(models.PositiveSmallIntegerField(), default=list)  # indices into answers
    pinned = models.BooleanField(default=False)
    abandoned = models.BooleanField(default=False)
    digest = models.BinaryField(max_length=16)
    external_id = models.CharField(max_length=255, null=True)  # noqa: DJ001
    occurred_at = models.DateTimeField(null=True)
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(position__gte=1), name="message_position_from_one"),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}/{self.position}"


class ModelCalibration(TenantModel):
    """What a tenant's reports of usage say of a model: the factor its new conversations begin with (semantics 3)."""

    pk = models.CompositePrimaryKey("tenant_id", "model")
    model = models.CharField(max_length=255)  # as the registry lists it
    tokenizer = models.CharField(max_length=32)  # the factor is relative to
    factor = models.FloatField()
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.model} x {self.factor:.3f}"


class Recount(models.Model):
    """A conversation that waits for its counts to be made anew by its model's tokenizer. Gone when that is done.

    Outside row-level security like the queue of compactions; it holds ids and numbers only.
    """

    conversation = models.OneToOneField(
        Conversation, primary_key=True, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    tenant_id = models.UUIDField()
    next_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["next_at"], name="recount_due")]

    def __str__(self) -> str:
        return str(self.pk)
