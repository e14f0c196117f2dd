"""Running a compaction, one pass per task: begin (a transaction), the work (none), finish (a transaction).

The automaton of compaction and pass (docs/design.md). Every transition is a compare-and-swap on the fence of the claim:
a late worker's result is refused, and its cost recorded all the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from compaction_service.compactions import claims, ending, leases, starting
from compaction_service.compactions.applying import apply
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.models import LIVE, Compaction, Method, Pass, PassKind, PassStatus, Status, Work
from compaction_service.compactions.steps import Done, Failed, Result, Step, execute
from compaction_service.compactions.wakeup import wake
from compaction_service.usage.services import call_record
from tenants.scope import tenant_scope

logger = logging.getLogger(__name__)


def run(claim: Claim) -> None:
    """Run the next pass of a claimed compaction to its end. Safe to run twice and to kill anywhere."""
    with leases.held(claim):
        with tenant_scope(claim.tenant_id):
            step = begin(claim)
        if step is None:
            return
        connection.close()  # back to the pool: a model call may take minutes
        result = execute(step)
        with tenant_scope(claim.tenant_id):
            finish(claim, step, result)
