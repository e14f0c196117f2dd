"""The mark of a conversation that is near its limit, and the moment it comes there (semantics 4)."""

from __future__ import annotations

import logging
import uuid
from functools import partial

from django.db import transaction

from compaction_service.api.metrics import NEAR_LIMIT
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms, trigger_tokens
from compaction_service.routers import current_alias

logger = logging.getLogger(__name__)

NEAR = 0.9  # of the limit


def note(conversation: Conversation, terms: Terms) -> bool:
    """Set the mark from the sums as they are now. True: it crossed upwards; `announce` that once the row is written."""
    before = conversation.near_limit
    conversation.near_limit = trigger_tokens(conversation, terms) >= NEAR * terms.limits.limit
    return conversation.near_limit and not before


def announce(conversation: Conversation) -> None:
    """`context.near_limit`, after the commit."""
    transaction.on_commit(partial(_tell, conversation.id), using=current_alias.get())


def _tell(conversation_id: uuid.UUID) -> None:
    NEAR_LIMIT.inc()
    logger.info("context near its limit", extra={"conversation": str(conversation_id)})
