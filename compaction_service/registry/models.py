"""The models that conversations and summaries can use. One table for all tenants, written by the platform only."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from compaction_service.registry.catalogue import PRICE_PLACES
from compaction_service.registry.specs import ModelSpec


class Source(models.TextChoices):
    """Where a row's values are from."""

    LITELLM = "litellm"
    OVERRIDE = "override"


def _price() -> models.DecimalField[Any, Any]:
    return models.DecimalField(
        max_digits=PRICE_PLACES + 4,
        decimal_places=PRICE_PLACES,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="USD per token.",
    )


class Model(models.Model):
    """A model under litellm's name for it. The columns hold what is in force; a sync leaves `overridden` ones alone."""

    name = models.CharField(max_length=200, unique=True)
    key = models.CharField(max_length=200, db_index=True, editable=False, help_text="What its spellings share.")
    provider = models.CharField(max_length=100, blank=True)
    context_window = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Input tokens; empty: not known."
    )
    max_output = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Output tokens; empty: not known."
    )
    tokenizer = models.CharField(max_length=40, help_text="Encoding, and family where they differ.")
    factor = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0.1), MaxValueValidator(10)],
        help_text="Tokens of the model for one of the encoding.",
    )
    input_price = _price()
    output_price = _price()
    source = models.CharField(max_length=16, choices=Source.choices, default=Source.LITELLM, editable=False)
    overridden = ArrayField(models.CharField(max_length=20), default=list, blank=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "registry_model"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def spec(self) -> ModelSpec:
        """The row as plain values."""
        return ModelSpec(
            name=self.name,
            provider=self.provider,
            context_window=self.context_window,
            max_output=self.max_output,
            tokenizer=self.tokenizer,
            factor=self.factor,
            input_price=self.input_price,
            output_price=self.output_price,
            window_source="override" if "context_window" in self.overridden else "registry",
        )
