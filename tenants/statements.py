"""A tenant's rows by statements that are written once, for what runs with every turn of every agent.

The ORM takes longer to write such a statement than PostgreSQL to run it. Columns and converters are the model's own,
the tenant is the one in scope, as with its manager. Everything else goes through the ORM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connections, models

from compaction_service.routers import current_alias
from tenants.scope import TenantModel, WrongScope, required_tenant

M = TypeVar("M", bound=models.Model)


class Statement:
    """What reading and writing share: a table, and some of its columns by the names of their fields."""

    def __init__(self, model: type[models.Model], names: Sequence[str] = ()) -> None:
        self._meta, self._names = model._meta, names  # noqa: SLF001  (Django's documented interface)

    @cached_property
    def fields(self) -> list[models.Field[Any, Any]]:
        """Of the names, or all."""
        if not self._names:
            return list(self._meta.concrete_fields)
        return [self._meta.get_field(name) for name in self._names]  # type: ignore[misc]

    def values_of(self, row: models.Model) -> list[Any]:
        """The row's values as the database takes them."""
        connection = connections[current_alias.get()]
        return [field.get_db_prep_save(getattr(row, field.attname), connection) for field in self.fields]


class Select(Statement, Generic[M]):
    """`select <names> ... where tenant_id = <the scope's> and <condition> <ending>`. `tenant`: its column's name."""

    def __init__(
        self, model: type[M], condition: str, *, ending: str = "", names: Sequence[str] = (), tenant: str = "tenant_id"
    ) -> None:
        super().__init__(model, names)
        self._model, self._condition, self._ending, self._tenant = model, condition, ending, tenant

    @cached_property
    def sql(self) -> str:
        columns = ", ".join(f'"{field.column}"' for field in self.fields)
        table = self._meta.db_table
        return f"select {columns} from {table} where {self._tenant} = %s and {self._condition} {self._ending}"  # noqa: S608

    @cached_property
    def _converters(self) -> list[tuple[int, Any]]:
        """By column; the same for all connections: they are of one kind of database."""
        connection = connections[current_alias.get()]
        return [(at, one) for at, field in enumerate(self.fields) for one in field.get_db_converters(connection)]

    def tuples(self, *values: Any) -> list[list[Any]]:
        """The values of the rows found, in the order of the names. `values`: of the condition's placeholders."""
        connection = connections[current_alias.get()]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, [required_tenant(), *values])
            found = [list(row) for row in cursor.fetchall()]
        for index, convert in self._converters:
            for row in found:
                row[index] = convert(row[index], None, connection)
        return found

    def rows(self, *values: Any) -> list[M]:
        """The rows found. For a statement of all columns."""
        names = [field.attname for field in self.fields]
        return [self._model.from_db(current_alias.get(), names, row) for row in self.tuples(*values)]


class Update(Statement):
    """`update ... set <names> where tenant_id = <the scope's> and <condition>`."""

    def __init__(self, model: type[TenantModel], names: Sequence[str], condition: str) -> None:
        super().__init__(model, names)
        self._condition = condition

    @cached_property
    def sql(self) -> str:
        columns = ", ".join(f'"{field.column}" = %s' for field in self.fields)
        return f"update {self._meta.db_table} set {columns} where tenant_id = %s and {self._condition}"  # noqa: S608

    def run(self, row: models.Model, *values: Any) -> int:
        """Write the names' values of `row` where the condition holds for `values`; how many rows that was."""
        with connections[current_alias.get()].cursor() as cursor:
            cursor.execute(self.sql, [*self.values_of(row), required_tenant(), *values])
            return int(cursor.rowcount)


class Delete(Statement):
    """`delete from ... where tenant_id = <the scope's> and <condition>`."""

    def __init__(self, model: type[models.Model], condition: str) -> None:
        super().__init__(model)
        self._condition = condition

    def run(self, *values: Any) -> int:
        """Delete the rows; how many that was. The database deletes nothing that hangs on them."""
        sql = f"delete from {self._meta.db_table} where tenant_id = %s and {self._condition}"  # noqa: S608
        with connections[current_alias.get()].cursor() as cursor:
            cursor.execute(sql, [required_tenant(), *values])
            return int(cursor.rowcount)


class Insert(Statement):
    """`insert into ... values ...` of whole rows."""

    @cached_property
    def sql(self) -> str:
        columns = ", ".join(f'"{field.column}"' for field in self.fields)
        return f"insert into {self._meta.db_table} ({columns}) values "  # noqa: S608

    @cached_property
    def _one(self) -> str:
        return f"({', '.join(['%s'] * len(self.fields))})"

    def run(self, rows: Sequence[TenantModel]) -> None:
        """Insert them in one statement. Raises WrongScope for a row of another tenant."""
        if not rows:
            return
        if any(row.tenant_id != required_tenant() for row in rows):
            raise WrongScope("A row belongs to another tenant.")
        values = [value for row in rows for value in self.values_of(row)]
        with connections[current_alias.get()].cursor() as cursor:
            cursor.execute(self.sql + ", ".join([self._one] * len(rows)), values)
