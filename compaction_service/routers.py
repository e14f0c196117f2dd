"""Which database role a query runs under. The three aliases are one database with three roles (docs/design.md)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

current_alias: ContextVar[str] = ContextVar("current_alias", default="default")


class RoleRouter:
    """Queries go to the alias in scope (`default`, or `platform` inside `platform_scope`); only `owner` migrates."""

    def db_for_read(self, _model: Any, **_hints: Any) -> str:
        return current_alias.get()

    def db_for_write(self, _model: Any, **_hints: Any) -> str:
        return current_alias.get()

    def allow_relation(self, _one: Any, _other: Any, **_hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == "owner"
