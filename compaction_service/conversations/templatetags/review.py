"""What the pages of conversations and compactions format alike."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import template

register = template.Library()


@register.filter
def grouped(value: Any) -> str:
    """A number with its thousands set apart; an en dash for none."""
    return "\u2013" if value is None or value == "" else f"{value:,}"


@register.filter
def money(value: Decimal | None) -> str:
    """US dollars; small sums keep their digits."""
    if value is None:
        return "\u2013"
    return f"${value:.2f}" if value >= 1 or value == 0 else f"${value:.6f}"
