"""What a tenant may store: its limits, asked before anything is written. A tenant without a limit costs no query.

Conversations are counted under a lock of their own, so that two creations at once cannot both be the last. Stored
tokens are a sum over the tenant's conversations: a process asks for it every few seconds at most and adds what it wrote
since, so that appends of several processes may go over the limit by what they store in that time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Sum

from compaction_service.api.errors import ApiError, limit_error
from compaction_service.conversations.models import Conversation
from compaction_service.routers import current_alias
from tenants.limits import limits_of
from tenants.models import Tenant
from tenants.usage import usage_source

ASK_EVERY = 5.0  # seconds a sum of stored tokens is believed, as long as it leaves room
MOST_KEPT = 10_000  # sums; more tenants than that are not at work in one process

_sums: dict[UUID, tuple[float, int]] = {}  # tenant -> when asked (monotonic), tokens. Only of tenants with the limit

_LOCK = "select pg_advisory_xact_lock(hashtextextended('conversations:' || %s, 0))"


def check_conversations(tenant: Tenant) -> None:
    """`ApiError` 403 where the tenant has as many conversations as it may. Holds others of it off until the commit."""
    most = limits_of(tenant.limits).conversations
    if most is None:
        return
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_LOCK, [str(tenant.id)])
    if Conversation.objects.values("id")[:most].count() >= most:
        raise _reached("conversations", most, f"The tenant may store {most} conversations, and has as many.")


def check_tokens(tenant: Tenant, tokens: int) -> None:
    """`ApiError` 403 where `tokens` more would be over what the tenant may store. Counts them where not."""
    most = limits_of(tenant.limits).stored_tokens
    if most is None or not tokens:
        return
    now = time.monotonic()
    asked, stored = _sums.get(tenant.id, (0.0, most))
    if now - asked > ASK_EVERY or stored + tokens > most:
        asked, stored = now, stored_tokens()
    if stored + tokens > most:
        _sums.pop(tenant.id, None)
        raise _reached("stored_tokens", most, f"The tenant may store {most} tokens, and has {stored} of them.")
    if len(_sums) >= MOST_KEPT:
        _sums.clear()
    _sums[tenant.id] = (asked, stored + tokens)


def check_messages(tenant: Tenant, texts: Sequence[str], first: int) -> None:
    """`ApiError` 413 for a message that is longer than the tenant's may be, as compact JSON in UTF-8."""
    most = limits_of(tenant.limits).max_message_bytes
    if most is None:
        return
    for index, text in enumerate(texts, first):
        # Every character has a byte at least and four at most: most texts need not be encoded.
        if len(text) > most or (4 * len(text) > most and len(text.encode()) > most):
            detail = f"The message has {len(text.encode())} bytes as compact JSON; it may have {most}."
            raise limit_error(413, "message_too_large", detail, "max_message_bytes", most, attr=f"messages.{index}")


def stored_tokens() -> int:
    """Tokens of the messages that the tenant in scope has stored."""
    return Conversation.objects.aggregate(tokens=Sum("stored_tokens"))["tokens"] or 0


@usage_source
def stored() -> dict[str, Any]:
    """For `GET /v1/tenant`."""
    return {"conversations": Conversation.objects.count(), "stored_tokens": stored_tokens()}


def _reached(name: str, most: int, detail: str) -> ApiError:
    return limit_error(403, "limit_reached", f"{detail} Erase some first.", name, most)
