"""What must hold before this process serves or works: secrets are set, and row-level security binds our role."""

from __future__ import annotations

import logging
from functools import cache
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections

logger = logging.getLogger(__name__)

_ROLE = """
select rolsuper, rolbypassrls,
  exists (select from pg_policy p join pg_class c on c.oid = p.polrelid where pg_has_role(r.oid, c.relowner, 'MEMBER')),
  exists (select from pg_roles p where p.rolname = %s and pg_has_role(r.oid, p.oid, 'MEMBER'))
from pg_roles r where rolname = current_user
"""


def missing_settings() -> list[str]:
    """Names of the variables a serving process needs and does not have."""
    needed = {
        "SECRET_KEY": not settings.SECRET_KEY_IS_EPHEMERAL,
        "KEY_PEPPERS": settings.KEY_PEPPERS,
        "ENCRYPTION_KEYS": settings.ENCRYPTION_KEYS,
        "APP_DATABASE_URL": settings.DATABASES["default"].get("NAME"),
        "PLATFORM_DATABASE_URL": settings.DATABASES["platform"].get("NAME"),
        "BROKER_URL": settings.BROKER_URL,
        "CACHE_URL": settings.CACHE_URL,
    }
    return [name for name, value in needed.items() if not value]


@register(Tags.security, deploy=True)
def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """`manage.py check --deploy`: every secret and URL is set, peppers are long enough, encryption keys are valid,
    times hold together."""
    from tenants.crypto import valid_keys

    errors = [Error(f"{name} is not set.", id="compaction.E001") for name in missing_settings()]
    if any(len(pepper) < 16 for pepper in settings.KEY_PEPPERS.values()):
        errors.append(Error("A pepper in KEY_PEPPERS is shorter than 16 characters.", id="compaction.E002"))
    if not valid_keys():
        errors.append(Error("ENCRYPTION_KEYS holds something that is not a Fernet key.", id="compaction.E003"))
    errors += [Error(fault, id="compaction.E004") for fault in wrong_times()]
    return list(errors)


def wrong_times() -> list[str]:
    """What does not hold of: model timeout < pass deadline < the broker's redelivery (semantics 11)."""
    ordered = ("MODEL_CALL_TIMEOUT", "PASS_DEADLINE", "BROKER_REDELIVERY")
    return [
        f"{first} must be less than {second}."
        for first, second in pairwise(ordered)
        if getattr(settings, first) >= getattr(settings, second)
    ]


@cache
def assert_safe_role() -> None:
    """Raises ImproperlyConfigured if row-level security would not bind the application's role: a superuser, BYPASSRLS,
    an owner of tenant tables, or the platform role or a member of it. Asks the database once a
    process."""
    with connections["default"].cursor() as cursor:
        cursor.execute(_ROLE, [settings.PLATFORM_ROLE])
        superuser, bypass, owner, platform = cursor.fetchone()
    faults = {
        "is a superuser": superuser,
        "has BYPASSRLS": bypass,
        "owns tenant tables": owner,
        "is the platform role or a member of it": platform,
    }
    if found := [fault for fault, holds in faults.items() if holds]:
        raise ImproperlyConfigured(f"The role of APP_DATABASE_URL {' and '.join(found)}: tenants are not isolated.")


def assert_safe_to_serve() -> None:
    """Called once by the web process and by the worker at start. Raises ImproperlyConfigured.

    A database that is away is not a reason to stop: requests answer 503 until it is back, and each of them asks
    `assert_safe_role` again before it reads a key.
    """
    if errors := check_settings():
        raise ImproperlyConfigured(" ".join(str(error.msg) for error in errors))
    try:
        assert_safe_role()
    except OperationalError:
        logger.warning("database away at start")
    finally:
        connections["default"].close()
