"""Circuit breakers, kept in the database so that all workers share them. The rule is llm/breaker.py (semantics 7).

A healthy model costs one look-up by index before a call and one after; rows are written while something fails.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

from compaction_service.compactions.models import Breaker
from compaction_service.llm.breaker import BreakerState, Outcome, decide, record
from tenants.models import Tenant
from tenants.scope import required_tenant
from tenants.statements import Delete, Select

_READ, _CLOSE = Select(Breaker, "key = %s"), Delete(Breaker, "key = %s")  # of every call

FORGET = timedelta(days=1)  # a breaker that nobody called for so long: of a model or settings no longer in use


def key_of(model: str, tenant: Tenant) -> bytes:
    """Names a breaker: the model, and all the tenant has set of its summariser, URL and (encrypted) key included.

    A changed summariser is another one, so changing it closes what was open.
    """
    settings = json.dumps([model, tenant.summarizer], sort_keys=True).encode()
    return hashlib.sha256(settings + b"\0" + bytes(tenant.summarizer_key or b"")).digest()


def allows(model: str, tenant: Tenant, now: datetime) -> bool:
    """Whether the model may be called. One caller of many is let through to probe a broken one."""
    rows = _READ.rows(key_of(model, tenant))
    if not rows:
        return True
    row = rows[0]
    decision = decide(_state(row), now.timestamp())
    if decision == "probe":  # one at a time: looked at again under the row's lock
        locked = Breaker.objects.select_for_update().filter(pk=row.pk).first()
        if locked is None:
            return True
        decision = decide(_state(locked), now.timestamp())
        if decision == "probe":
            _write(locked, record(_state(locked), "probe", now.timestamp()), now)
    return decision != "refuse"


def note(key: bytes, model: str, outcome: Outcome, now: datetime) -> None:
    """Record what a call came to."""
    if outcome in ("success", "unrelated"):
        _CLOSE.run(key)
        return
    Breaker.objects.bulk_create(
        [Breaker(tenant_id=required_tenant(), key=key, model=model, changed_at=now)], ignore_conflicts=True
    )
    row = Breaker.objects.select_for_update().filter(key=key).first()
    if row is not None:
        _write(row, record(_state(row), outcome, now.timestamp()), now)
    Breaker.objects.filter(changed_at__lt=now - FORGET).delete()


def _state(row: Breaker) -> BreakerState:
    opened, probed = (at.timestamp() if at else None for at in (row.opened_at, row.probed_at))
    return BreakerState(row.failures, opened, probed)


def _write(row: Breaker, state: BreakerState, now: datetime) -> None:
    row.failures, row.changed_at = state.failures, now
    row.opened_at, row.probed_at = _time(state.opened_at), _time(state.probed_at)
    row.save(update_fields=["failures", "opened_at", "probed_at", "changed_at"])


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
