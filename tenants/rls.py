"""Row-level security as migration operations. Every migration that creates a table calls exactly one of

- `tenant_table(table)`: rows belong to a tenant (docs/design.md, Tenancy);
- `queue_table(table)` besides: rows of all tenants while no tenant is set (the work queue);
- `shared_table(table)`: no tenant's data; the application reads, the platform writes;
- `platform_table(table, ...)`: the application role has no rights at all.

Two roles are named in the settings. Migrations create them without login where they are missing, so that a migration
runs anywhere; a deployment creates them first, with login, and grants the platform role to the owner.
"""

from __future__ import annotations

from django.conf import settings
from django.db.migrations import RunSQL

CALLER = "nullif(current_setting('app.tenant', true), '')::uuid"
RIGHTS = "select, insert, update, delete"


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def roles() -> tuple[str, str]:
    """The application's and the platform's role, quoted."""
    return quoted(settings.APP_ROLE), quoted(settings.PLATFORM_ROLE)


def _sql(forward: list[str], reverse: list[str]) -> RunSQL:
    # Nothing is interpolated by the driver: params None keeps a percent sign in a role's name literal.
    return RunSQL(
        sql=[(statement, None) for statement in forward],
        reverse_sql=[(statement, None) for statement in reverse],
    )


def create_roles() -> RunSQL:
    """Creates the two roles where they are missing. Reversing keeps them: other databases may use them."""
    statements = []
    for name in (settings.APP_ROLE, settings.PLATFORM_ROLE):
        literal = "'" + name.replace("'", "''") + "'"
        statements.append(
            f"do $do$ begin if not exists (select from pg_roles where rolname = {literal}) then "
            f"create role {quoted(name)} nologin nosuperuser nobypassrls; end if; end $do$"
        )
    return _sql(statements, [])


def tenant_table(table: str, column: str = "tenant_id", app_rights: str = RIGHTS) -> RunSQL:
    """Forced row-level security on `column`: the application sees and writes the rows of the tenant set for the
    transaction, none when none is set; the platform all; the owner none."""
    app, platform = roles()
    name = quoted(table)
    own = f"{quoted(column)} = {CALLER}"
    return _sql(
        [
            f"alter table {name} enable row level security",
            f"alter table {name} force row level security",
            f"create policy tenant on {name} to {app} using ({own}) with check ({own})",
            f"create policy platform on {name} to {platform} using (true) with check (true)",
            f"revoke all on {name} from public, {app}, {platform}",
            f"grant {app_rights} on {name} to {app}",
            f"grant {RIGHTS} on {name} to {platform}",
        ],
        [
            f"revoke all on {name} from {app}, {platform}",
            f"drop policy platform on {name}",
            f"drop policy tenant on {name}",
            f"alter table {name} no force row level security",
            f"alter table {name} disable row level security",
        ],
    )


def queue_table(table: str) -> RunSQL:
    """A table that the application reads across tenants where no tenant is set (a worker looking for work), and one
    tenant's rows only where one is: what a request does can reach no other tenant's."""
    app, platform = roles()
    name = quoted(table)
    own = f"({CALLER} is null or tenant_id = {CALLER})"
    return _sql(
        [
            f"alter table {name} enable row level security",
            f"alter table {name} force row level security",
            f"create policy tenant on {name} to {app} using ({own}) with check ({own})",
            f"create policy platform on {name} to {platform} using (true) with check (true)",
        ],
        [
            f"drop policy platform on {name}",
            f"drop policy tenant on {name}",
            f"alter table {name} no force row level security",
            f"alter table {name} disable row level security",
        ],
    )


def same_tenant(table: str, column: str, target: str) -> RunSQL:
    """A foreign key over (tenant, `column`): row-level security does not bind foreign keys, so one over the id alone
    would let a tenant's row hang on another's, and take its place in a unique constraint."""
    key = quoted(f"{table}_{column}_tenant_fk")
    reference = f"foreign key (tenant_id, {quoted(column)}) references {quoted(target)} (tenant_id, id)"
    return _sql(
        [f"alter table {quoted(table)} add constraint {key} {reference} deferrable initially deferred"],
        [f"alter table {quoted(table)} drop constraint {key}"],
    )


def shared_table(table: str, app_rights: str = "select") -> RunSQL:
    """A table without a tenant's data, such as the registry of models."""
    app, platform = roles()
    name = quoted(table)
    return _sql(
        [
            f"revoke all on {name} from public, {app}, {platform}",
            f"grant {app_rights} on {name} to {app}",
            f"grant {RIGHTS} on {name} to {platform}",
        ],
        [f"revoke all on {name} from {app}, {platform}"],
    )


def platform_table(*tables: str) -> RunSQL:
    """Tables of the platform alone: staff, their sessions and log, platform keys."""
    app, platform = roles()
    names = ", ".join(quoted(table) for table in tables)
    return _sql(
        [f"revoke all on {names} from public, {app}, {platform}", f"grant {RIGHTS} on {names} to {platform}"],
        [f"revoke all on {names} from {platform}"],
    )


def security_definer(signature: str, definition: str) -> RunSQL:
    """A function that runs as the platform role, callable by the application role only.

    `definition` is what follows `create function <signature>`; it must be `security definer` with a fixed search path.
    The schema's CREATE right is lent to the platform role for the transfer only.
    """
    app, platform = roles()
    return _sql(
        [
            f"create function {signature} {definition}",
            f"grant create on schema public to {platform}",
            f"alter function {signature} owner to {platform}",
            f"revoke create on schema public from {platform}",
            f"revoke all on function {signature} from public",
            f"grant execute on function {signature} to {app}",
        ],
        [f"drop function {signature}"],
    )
