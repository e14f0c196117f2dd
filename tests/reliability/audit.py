"""The product's own invariants over every conversation of a cluster: `python -m tests.reliability.audit FORK...`.

The arguments are ids of forks: those have no rows for what was erased before. Runs in a process of the cluster's
environment, because the checks read rows by Django. Prints {conversation: problems}.
"""

from __future__ import annotations

import json
import sys

import django


def main() -> None:
    django.setup()
    from compaction_service.conversations.models import Conversation, Message
    from compaction_service.tokens.messages import counter_for
    from tenants.models import Tenant
    from tenants.scope import platform_scope, tenant_scope
    from tests.invariants import audit, chain_problems

    forks = set(sys.argv[1:])
    counter = counter_for("o200k_base", 1.0)
    found: dict[str, list[str]] = {}
    with platform_scope():
        tenants = list(Tenant.objects.values_list("id", flat=True))
    for tenant in tenants:
        with tenant_scope(tenant):
            conversations = {str(one): last for one, last in Conversation.objects.values_list("id", "last_position")}
        for one, last in conversations.items():
            with tenant_scope(tenant):
                copied = set(Message.objects.filter(conversation_id=one).values_list("position", flat=True))
            left_out = set(range(1, last + 1)) - copied if one in forks else set()
            problems = chain_problems(tenant, one, forked=bool(left_out))
            if problems := [*problems, *audit(tenant, one, counter)]:
                found[one] = problems
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
