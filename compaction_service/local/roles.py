"""The database and its two restricted roles, made with the owner's connection (docs/design.md, Tenancy).

Nothing here needs Django, and everything may be run again. The policies themselves come with the tenants' migrations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from compaction_service.local.errors import StackError

CREATE: LiteralString = "CREATE ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD {password}"
ALTER: LiteralString = "ALTER ROLE {role} LOGIN PASSWORD {password}"
GRANT_CONNECT: LiteralString = "GRANT CONNECT ON DATABASE {database} TO {role}"
GRANT_USAGE: LiteralString = "GRANT USAGE ON SCHEMA public TO {role}"
GRANT_MEMBERSHIP: LiteralString = "GRANT {role} TO {owner}"
GRANTS = (GRANT_CONNECT, GRANT_USAGE)
MAINTENANCE_DATABASE = "postgres"  # where CREATE DATABASE is run from
CONNECT_TIMEOUT_S = 10


@dataclass(frozen=True)
class Role:
    """A login of the application or the platform."""

    name: str
    password: str
    url: str


def role_of(variable: str, url: str) -> Role:
    """The role that a PostgreSQL URL logs in as. `variable` names the setting in errors."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise StackError(f"{variable} is not a PostgreSQL URL.") from None
    if not parts.get("user"):
        raise StackError(f"{variable} names no user.")
    return Role(str(parts["user"]), str(parts.get("password") or ""), url)


def ensure_database(owner_url: str) -> None:
    """Create the owner URL's database if it is missing. Raises StackError where the owner may not."""
    name = conninfo_to_dict(owner_url).get("dbname")
    if not name:
        raise StackError("DATABASE_URL names no database.")
    try:
        psycopg.connect(owner_url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError as exc:
        # libpq reports a failed login as text only, without an SQLSTATE.
        if f'database "{name}" does not exist' not in str(exc):
            raise StackError(f"DATABASE_URL cannot be used: {exc}") from exc
        create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(str(name)))
        with psycopg.connect(owner_url, dbname=MAINTENANCE_DATABASE, autocommit=True) as connection:
            try:
                connection.execute(create)
            except psycopg.errors.InsufficientPrivilege:
                raise StackError(f"Database {name} is missing, and {connection.info.user} may not create it.") from None


def ensure_roles(owner_url: str, app: Role, platform: Role) -> None:
    """Create the two roles, or correct their passwords, and let them into the owner's database.

    Tables are granted one by one in the migrations, so a table nobody thought of stays closed. The owner becomes a
    member of the platform role, to hand it the functions that look up keys. Raises StackError for a role that could
    bypass row-level security, and with the SQL to run where the owner may not create roles.
    """
    with psycopg.connect(owner_url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S) as connection:
        for role, grants in ((app, GRANTS), (platform, (*GRANTS, GRANT_MEMBERSHIP))):
            attributes = _attributes(connection, role.name)
            if attributes is None:
                _run(connection, role, [CREATE, *grants])
            elif any(attributes):
                raise StackError(f"Role {role.name} is superuser or has BYPASSRLS: row-level security would not hold.")
            else:
                _run(connection, role, _missing(connection, role, grants))
            if not _can_log_in(role):
                _run(connection, role, [ALTER])


def drop_database_and_roles(owner_url: str, *roles: Role) -> None:
    """Remove a throw-away database with everybody's connections to it, and its roles."""
    name = str(conninfo_to_dict(owner_url)["dbname"])
    with psycopg.connect(owner_url, dbname=MAINTENANCE_DATABASE, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        for role in roles:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role.name)))


def _attributes(connection: psycopg.Connection, name: str) -> tuple[bool, bool] | None:
    """Whether a role is superuser and whether it bypasses row-level security; None without such a role."""
    row = connection.execute("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = %s", [name]).fetchone()
    return (bool(row[0]), bool(row[1])) if row else None


def _missing(connection: psycopg.Connection, role: Role, grants: tuple[LiteralString, ...]) -> list[LiteralString]:
    """The grants an existing role lacks. A schema's owner could not grant CONNECT again."""
    held = connection.execute(
        "SELECT has_database_privilege(%(role)s, current_database(), 'CONNECT'), "
        "has_schema_privilege(%(role)s, 'public', 'USAGE'), pg_has_role(%(role)s, 'USAGE')",
        {"role": role.name},
    ).fetchall()[0]
    missing = {grant for grant, has in zip((*GRANTS, GRANT_MEMBERSHIP), held, strict=True) if not has}
    return [grant for grant in grants if grant in missing]


def _run(connection: psycopg.Connection, role: Role, templates: list[LiteralString]) -> None:
    """Execute statements; one that the owner may not run becomes a StackError with the SQL still to be run."""
    for done, template in enumerate(templates):
        try:
            connection.execute(_statement(connection, template, role, _verifier(connection, role)))
        except psycopg.errors.InsufficientPrivilege as exc:
            rest = (
                _statement(connection, line, role, "<the password in its URL>").as_string(connection)
                for line in templates[done:]
            )
            script = "\n".join(f"  {line};" for line in rest)
            raise StackError(
                f"{connection.info.user} may not do this: {exc.diag.message_primary}. "
                f"Have an administrator run, in database {connection.info.dbname}, then try again:\n{script}"
            ) from exc


def _verifier(connection: psycopg.Connection, role: Role) -> str:
    """What the server stores of a password. Sent instead of it, so that no log of statements shows it."""
    secret = connection.pgconn.encrypt_password(role.password.encode(), role.name.encode(), b"scram-sha-256")
    return secret.decode()


def _statement(connection: psycopg.Connection, template: LiteralString, role: Role, password: str) -> sql.Composed:
    return sql.SQL(template).format(
        role=sql.Identifier(role.name),
        password=sql.Literal(password),
        database=sql.Identifier(connection.info.dbname),
        owner=sql.Identifier(connection.info.user),
    )


def _can_log_in(role: Role) -> bool:
    try:
        psycopg.connect(role.url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError:
        return False
    return True
