"""Idempotency-Key: a repeated POST gives the answer of the first one, and its work is done once.

The answer is stored in the transaction of the work, so there is never one without the other. Only answers below 300
are stored: a refusal changed nothing, and its repeat may be judged anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.models import IdempotencyKey
from compaction_service.api.renderers import RawJSON, dumps
from compaction_service.routers import current_alias
from tenants.crypto import decrypt, encrypt
from tenants.scope import required_tenant

KEEP = timedelta(hours=24)
PURGED_AT_ONCE = 500
KEPT_HEADERS = ("Location", "ETag")

# Lock and look-up in one round trip. Two at once: the second does not get the lock. One that commits between the
# second's snapshot and its lock: the second's insert meets the row and gives up.
_BEGIN = """
select pg_try_advisory_xact_lock(hashtextextended('idempotency:' || %(tenant)s || ':' || %(key)s, 0)),
       r.fingerprint, r.status, r.headers, r.body, r.encrypted
from (select 1) as one
left join api_idempotency r on r.tenant_id = %(tenant)s::uuid and r.key = %(key)s and r.created_at > %(since)s
"""
_STORE = """
insert into api_idempotency
  (tenant_id, key, fingerprint, status, headers, body, encrypted, conversation_id, created_at)
values (%(tenant)s, %(key)s, %(fingerprint)s, %(status)s, %(headers)s, %(body)s, %(encrypted)s, %(conversation)s,
  %(now)s)
on conflict (tenant_id, key) do update set
  fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers, body = excluded.body,
  encrypted = excluded.encrypted, conversation_id = excluded.conversation_id, created_at = excluded.created_at
where api_idempotency.created_at <= %(since)s
"""


def fingerprint(request: HttpRequest, body: bytes) -> bytes:
    """What must be the same for a request to be a repeat, byte for byte."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode("utf-8", "surrogatepass"))
    digest.update(body)
    return digest.digest()


def answer_once(
    key: str,
    mark: bytes,
    work: Callable[[], Response],
    *,
    owner: UUID | None = None,
    secret: bool = False,
    conversation: Callable[[], UUID | None] = lambda: None,
) -> Response:
    """`work()`, or the stored answer of the request that had this key and mark before, in the transaction at hand.

    `owner`: whose key it is; unless given, the tenant's in scope. `secret`: the answer is stored encrypted.
    `conversation` is asked after the work for the conversation whose text the answer may hold. 400 for an unusable
    key, 409 for a key of another request or of one still running.
    """
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise ApiError(400, "invalid", "Must be 1 to 255 printable ASCII characters.", attr="Idempotency-Key")
    now = timezone.now()
    ids: dict[str, Any] = {"tenant": str(owner or required_tenant()), "key": key, "since": now - KEEP}
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_BEGIN, ids)
        locked, stored_mark, status, headers, body, encrypted = cursor.fetchone()
        if stored_mark is not None:
            if bytes(stored_mark) != mark:
                raise ApiError(409, "idempotency_conflict", "This Idempotency-Key was used for another request.")
            text = decrypt(body.encode()) if encrypted else body
            replayed = {**json.loads(headers), "Idempotency-Replayed": "true"}
            return Response(RawJSON(text) if text else None, status=status, headers=replayed)
        if not locked:
            raise _running()
        response = work()
        if response.status_code >= 300:
            return response
        raw = b"" if response.data is None else dumps(response.data)
        kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        cursor.execute(
            _STORE,
            ids
            | {
                "fingerprint": mark,
                "status": response.status_code,
                "headers": json.dumps(kept),
                "body": (encrypt(raw.decode()) if secret else raw).decode(),
                "encrypted": secret,
                "conversation": conversation(),
                "now": now,
            },
        )
        if cursor.rowcount != 1:
            raise _running()
        if raw:
            response.data = RawJSON(raw.decode())  # rendered once; the answer is what was stored, byte for byte
    return response


def forget_conversation(conversation_id: UUID) -> int:
    """Deletes the answers that may hold this conversation's text (semantics 9); how many. Inside a tenant scope."""
    return IdempotencyKey.objects.filter(conversation_id=conversation_id).delete()[0]


def purge(most: int = PURGED_AT_ONCE) -> int:
    """Deletes up to `most` answers older than a day, of all tenants; how many. Under the platform role."""
    old = IdempotencyKey.unscoped.filter(created_at__lte=timezone.now() - KEEP).order_by("created_at")
    keys = list(old.values_list("tenant_id", "key")[:most])
    return IdempotencyKey.unscoped.filter(pk__in=keys).delete()[0] if keys else 0


def _running() -> ApiError:
    return ApiError(
        409, "idempotency_in_progress", "A request with this Idempotency-Key is running.", headers={"Retry-After": "1"}
    )
