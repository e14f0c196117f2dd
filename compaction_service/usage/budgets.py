"""A tenant's budget of a calendar month (UTC): money is put aside before a call, and what it cost is taken after.

What is put aside lapses by itself, so that a worker that was killed holds nothing for ever. The month's row is the lock
under which calls of one tenant are weighed against its budget; tenants without one have no row and no lock.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import DecimalField, F, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from compaction_service.api.metrics import BUDGET_EXHAUSTED
from compaction_service.routers import current_alias
from compaction_service.usage.models import Day, Month, Reservation
from tenants.limits import limits_of
from tenants.scope import required_tenant
from tenants.selectors import tenant_get, tenant_keep

logger = logging.getLogger(__name__)

_NOTHING = Value(Decimal(0), output_field=DecimalField(max_digits=18, decimal_places=8))


@dataclass(frozen=True)
class Spending:
    """What a tenant spent in a month, US dollars. `reserved`: put aside for calls that are being made."""

    month: date
    spent: Decimal
    reserved: Decimal
    exhausted_at: datetime | None


def affordable(budget: Decimal, spent: Decimal, reserved: Decimal, amount: Decimal) -> bool:
    """Whether a call of `amount` still fits. A budget of 0 pays for nothing."""
    return spent + reserved + amount <= budget and budget > 0


def reserve(budget: Decimal, amount: Decimal, *, seconds: float) -> uuid.UUID | None:
    """Put the price of a call aside, in a transaction of the tenant; None: the budget does not pay it, or it is gone.

    It lapses after `seconds`, by when the call has ended or its result counts for nothing.
    """
    if not tenant_keep():
        return None
    month = _locked(_month())
    held = _held(month.month)
    if not affordable(budget, month.cost, held, amount):
        _exhausted(month)
        return None
    Reservation.objects.filter(until__lte=Now()).delete()
    row = Reservation(month=month.month, amount=amount, tenant_id=required_tenant())
    row.until = Now() + timedelta(seconds=seconds)  # the database's clock
    row.save(force_insert=True)
    return row.id


def settle(reservation: uuid.UUID | None, cost: Decimal | None) -> None:
    """Take what a call cost, in the transaction that writes it to the ledger. Last there: the month's row is a lock."""
    if reservation is not None:
        Reservation.objects.filter(id=reservation).delete()
    if cost:
        Month.objects.filter(month=_month()).update(cost=F("cost") + cost)


def spending() -> Spending:
    """This month's, of the tenant in scope."""
    month = _month()
    row = Month.objects.filter(month=month).first()
    return Spending(month, row.cost if row else _of_days(month), _held(month), row.exhausted_at if row else None)


def budget_shown() -> dict[str, Any]:
    """Budget and spending of the tenant in scope, as its pages show them."""
    limit = limits_of(tenant_get().limits).monthly_budget
    found = spending()
    left = None if limit is None else max(Decimal(0), limit - found.spent - found.reserved)
    return {**asdict(found), "limit": limit, "remaining": left}


def _month() -> date:
    return timezone.now().date().replace(day=1)


def _locked(month: date) -> Month:
    """The month's row under its lock; made from the daily sums at the first call that is weighed."""
    rows = Month.objects.select_for_update().filter(month=month)
    if (found := rows.first()) is not None:
        return found
    made = Month(month=month, cost=_of_days(month), tenant_id=required_tenant())
    Month.objects.bulk_create([made], ignore_conflicts=True)
    return rows.get()


def _of_days(month: date) -> Decimal:
    return _sum(Day.objects.filter(day__gte=month, day__lt=_next(month)), "cost")


def _held(month: date) -> Decimal:
    return _sum(Reservation.objects.filter(month=month, until__gt=Now()), "amount")


def _sum(rows: QuerySet[Day] | QuerySet[Reservation], field: str) -> Decimal:
    total: Decimal = rows.aggregate(total=Coalesce(Sum(field), _NOTHING))["total"]
    return total


def _next(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def _exhausted(month: Month) -> None:
    """Told once a month, in the log and in the metrics."""
    if not Month.objects.filter(id=month.id, exhausted_at=None).update(exhausted_at=timezone.now()):
        return

    def tell() -> None:
        BUDGET_EXHAUSTED.inc()
        logger.warning("budget exhausted", extra={"tenant": str(month.tenant_id), "month": month.month.isoformat()})

    transaction.on_commit(tell, using=current_alias.get())
