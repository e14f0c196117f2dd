"""Compactions, their passes, the summary chain, and the work queue. States and locks: docs/design.md."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from compaction_service.conversations.models import Conversation
from compaction_service.fields import JSONText
from compaction_service.ids import uuid7
from tenants.scope import TenantModel


class Status(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = (Status.QUEUED, Status.RUNNING)


class Outcome(models.TextChoices):
    APPLIED = "applied"
    SKIPPED = "skipped"
    IRREDUCIBLE = "irreducible"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALE = "stale"


class Trigger(models.TextChoices):
    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"
    TOOL_CALL = "tool_call"


class Method(models.TextChoices):
    LLM = "llm"
    EXTRACTIVE = "extractive"


class Review(models.TextChoices):
    UNREVIEWED = "unreviewed"
    APPROVED = "approved"
    FLAGGED = "flagged"


class Span(NamedTuple):
    """Positions and turns of what is covered, ends included."""

    first: int
    last: int
    first_turn: int
    last_turn: int


class Compaction(TenantModel):
    """One compaction: the job while it is live, the log entry for ever (semantics 10).

    queued -> running -> succeeded (applied | skipped | irreducible) | failed (failed | stale);
    queued | running -> cancelled. Final states do not change; `reverted_at` and `review` may be set on them.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="compactions", db_constraint=False
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    outcome = models.CharField(max_length=12, choices=Outcome, blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    trigger = models.CharField(max_length=10, choices=Trigger)
    requested_by = models.CharField(max_length=100)
    request_id = models.CharField(max_length=128, blank=True, default="")  # of the HTTP request that asked, for logs
    strategy = models.CharField(max_length=16)
    policy = models.JSONField()  # the effective policy it ran under
    focus = models.TextField(blank=True, default="")
    focus_from = models.PositiveIntegerField(null=True)  # the message it is text of; None: it came with a request
    instructions = models.TextField(blank=True, default="")
    up_to = models.PositiveIntegerField(null=True)
    window_cap = models.PositiveIntegerField(null=True)  # the most the provider said it takes
    follow_up = models.JSONField(null=True)  # parameters of the request that came while this one ran

    # The plan: fixed when the job starts, compared when it applies (semantics 11).
    from_position = models.PositiveIntegerField(null=True)
    to_position = models.PositiveIntegerField(null=True)
    from_turn = models.PositiveIntegerField(null=True)
    to_turn = models.PositiveIntegerField(null=True)
    carried = ArrayField(models.PositiveIntegerField(), default=list)
    input_hash = models.BinaryField(max_length=32, null=True)
    work = models.JSONField(default=dict)  # engine-facing progress: models left, chunk budget
    undo = models.JSONField(null=True)  # what a revert goes back to: carried, pinned, thinking of before

    model = models.CharField(max_length=255, blank=True, default="")
    method = models.CharField(max_length=10, choices=Method, blank=True, default="")
    fallback_reason = models.CharField(max_length=200, blank=True, default="")
    context_before = models.JSONField(null=True)  # {tokens, breakdown}
    context_after = models.JSONField(null=True)
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    target_reached = models.BooleanField(null=True)
    summary = models.TextField(blank=True, default="")
    sections = JSONText(default=list)
    dropped_content = JSONText(default=list)
    entities = JSONText(default=list)
    notes = JSONText(default=list)
    keeps_texts = models.BooleanField(default=True)  # until `log_retention` erases them; never under `silent`
    llm_tokens_in = models.PositiveIntegerField(default=0)
    llm_tokens_out = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, default=0, null=True)  # None: not told

    review = models.CharField(max_length=10, choices=Review, default=Review.UNREVIEWED)
    reverted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(status__in=["queued", "running"]), name="compaction_one_live"
            ),
            # What passes and summaries refer to, together (migration 0004): never another tenant's compaction.
            models.UniqueConstraint(fields=["tenant", "id"], name="compaction_of_tenant"),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running"], outcome="", finished_at__isnull=True)
                | Q(status="succeeded", outcome__in=["applied", "skipped", "irreducible"], finished_at__isnull=False)
                | Q(status="failed", outcome__in=["failed", "stale"], finished_at__isnull=False)
                | Q(status="cancelled", outcome="cancelled", finished_at__isnull=False),
                name="compaction_status_outcome",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "id"], name="compaction_by_conversation"),
            models.Index(fields=["conversation", "id"], condition=Q(keeps_texts=True), name="compaction_with_texts"),
            # Newest first by what a reviewer filters by; the rarest values are the ones looked for.
            models.Index(fields=["outcome", "id"], name="compaction_by_outcome"),
            models.Index(fields=["trigger", "id"], name="compaction_by_trigger"),
            models.Index(fields=["review", "id"], name="compaction_reviewed", condition=~Q(review="unreviewed")),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def span(self) -> Span:
        """What it covers. Raises ValueError before it was planned."""
        ends = (self.from_position, self.to_position, self.from_turn, self.to_turn)
        first, last, first_turn, last_turn = ends
        if first is None or last is None or first_turn is None or last_turn is None:
            raise ValueError("not planned yet")
        return Span(first, last, first_turn, last_turn)


class PassKind(models.TextChoices):
    NOTES = "notes"
    CHUNK = "chunk"
    SUMMARY = "summary"
    RESUMMARIZE = "resummarize"
    MERGE = "merge"


class PassStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Pass(TenantModel):
    """One model call's worth of work of a compaction: its own task, its own row (semantics 7).

    queued -> running -> succeeded | failed; running -> queued when the lease expires or the error is transient.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="passes", db_constraint=False)
    number = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=12, choices=PassKind)
    status = models.CharField(max_length=10, choices=PassStatus, default=PassStatus.QUEUED)
    method = models.CharField(max_length=10, choices=Method, default=Method.LLM)
    model = models.CharField(max_length=255, blank=True, default="")
    from_position = models.PositiveIntegerField(null=True)  # what its input holds of the span
    to_position = models.PositiveIntegerField(null=True)
    piece = models.PositiveSmallIntegerField(default=0)  # which chunk of the span, from 0
    output = models.TextField(blank=True, default="")
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    error = models.CharField(max_length=200, blank=True, default="")
    attempts = models.PositiveSmallIntegerField(default=0)
    first_attempt_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["compaction", "number"], name="pass_number"),
            models.UniqueConstraint(
                fields=["compaction"], condition=Q(status__in=["queued", "running"]), name="pass_one_live"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.compaction_id} #{self.number} {self.kind}"


class NodeState(models.TextChoices):
    ACTIVE = "active"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    REVERTED = "reverted"
    STALE = "stale"


class Summary(TenantModel):
    """A node of the summary chain. Its text never changes; its state does (semantics 10).

    active -> superseded | merged (by an apply) -> active (revert); active -> reverted;
    any -> stale, by an erasure under it, which takes the text too (semantics 9).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="summaries", db_constraint=False
    )
    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="nodes", db_constraint=False)
    level = models.PositiveSmallIntegerField(default=0)
    from_position = models.PositiveIntegerField()
    to_position = models.PositiveIntegerField()
    from_turn = models.PositiveIntegerField()
    to_turn = models.PositiveIntegerField()
    text = models.TextField()
    sections = JSONText(default=list)
    ledger = JSONText(default=list)  # its notes (engine/summary/notes.py), the last section of the text
    tokens = models.PositiveIntegerField()  # raw, as the context shows it
    chars = models.PositiveIntegerField()
    method = models.CharField(max_length=10, choices=Method)
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="children")
    retired_by = models.ForeignKey(Compaction, null=True, on_delete=models.SET_NULL, related_name="retired")
    entities = JSONText(default=list)
    state = models.CharField(max_length=10, choices=NodeState, default=NodeState.ACTIVE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "summaries"
        constraints: ClassVar = [
            # That active spans do not overlap is an exclusion constraint in the migration (int4range with gist).
            models.CheckConstraint(condition=Q(from_position__lte=models.F("to_position")), name="summary_span"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "from_position"], condition=Q(state="active"), name="summary_active"),
            models.Index(fields=["conversation", "id"], name="summary_by_conversation"),
            models.Index(fields=["tenant", "id"], name="summary_by_tenant"),
            models.Index(fields=["state", "id"], condition=Q(state__in=["reverted", "stale"]), name="summary_undone"),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id} {self.from_position}..{self.to_position}"


class Breaker(TenantModel):
    """The circuit breaker of a model at a base URL (llm/breaker.py). No row: closed, and nothing failed lately.

    `key` names model, URL and settings of the summariser, so that changed settings have another breaker (breakers.py).
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    key = models.BinaryField(max_length=32)
    model = models.CharField(max_length=255)
    failures = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True)
    probed_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "key"], name="breaker_key")]

    def __str__(self) -> str:
        return f"{self.model} {'open' if self.opened_at else 'closed'}"


class Work(models.Model):
    """The claimable unit: one row per live compaction, gone when it ends. A directory without any text.

    Outside row-level security so that a claim can be fair over tenants; it holds ids, numbers and times only.
    """

    compaction = models.OneToOneField(
        Compaction, primary_key=True, on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    tenant_id = models.UUIDField()
    # Of a tenant's jobs the higher goes first: overflow 3, tool_call 2, manual 1, threshold 0.
    priority = models.SmallIntegerField(default=0)
    next_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)  # executions since the last progress
    fence = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "job"
        indexes: ClassVar = [
            models.Index(fields=["tenant_id", "-priority", "created_at"], name="work_by_tenant"),
            models.Index(fields=["tenant_id"], condition=Q(lease_until__isnull=False), name="work_in_flight"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class Turn(models.Model):
    """A tenant's place in the claims (claims.py): tags of start-time fair queueing. A directory, like the queue."""

    tenant_id = models.UUIDField(primary_key=True)
    begun = models.FloatField(default=0)  # the tag its last claim began with
    due = models.FloatField(default=0)  # and the one its next may begin with

    class Meta:
        indexes: ClassVar = [models.Index(fields=["begun"], name="turn_latest")]

    def __str__(self) -> str:
        return str(self.pk)
