from __future__ import annotations

from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tenants import selectors


def test_create_tenant__name__prints_a_key_that_works(db: None) -> None:
    out = StringIO()
    call_command("create_tenant", f"t-{uuid4()}", "--scopes", "write", "--rate", "7", stdout=out)
    secret = next(word for word in out.getvalue().split() if word.startswith("ck_"))
    found = selectors.key_find(secret, timezone.now())
    assert found is not None
    assert found.principal.scopes == {"read", "write"}
    assert found.principal.tenant.limits == {"requests_per_minute": 7}
    assert str(found.principal.tenant.id) in out.getvalue()


def test_create_tenant__name_in_use__fails_and_says_so(db: None) -> None:
    name = f"t-{uuid4()}"
    call_command("create_tenant", name, "--quiet", stdout=StringIO())
    with pytest.raises(CommandError, match="of this name"):
        call_command("create_tenant", name, stdout=StringIO())


def test_create_platform_key__name__prints_a_key_that_works(db: None) -> None:
    out = StringIO()
    call_command("create_platform_key", "ops", stdout=out)
    assert selectors.platform_key_find(out.getvalue().strip(), timezone.now()) is not None
