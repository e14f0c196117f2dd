"""What all pages of the admin share: rows of all tenants, pages fast at any size, an access log.

The admin runs under the platform role (tenants/middleware.py). Nothing here counts a table or sorts by a column without
an index: lists are newest first by id (UUIDv7, so by time), and only their newest rows can be paged through.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.contrib.admin import ModelAdmin as DjangoModelAdmin
from django.contrib.admin import ShowFacets, SimpleListFilter
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.paginator import InfinitePaginator as UnfoldPaginator
from unfold.views import ChangeList

from tenants import audit
from tenants.members import visible_to
from tenants.models import Tenant
from tenants.scope import PLATFORM, tenant_scope

Shown = TypeVar("Shown", bound=Callable[..., Any])

logger = logging.getLogger(__name__)

MOST_PAGES = 100  # a list goes no deeper: OFFSET reads all it skips. Filters and search reach the rest
MOST_TENANTS = 30  # offered in the filter; of any other tenant, follow the links on its page
MOST_FOUND = 100  # rows a search finds by each way it looks
_HEX = re.compile(r"[0-9a-f]{6,32}")


class InfinitePaginator(UnfoldPaginator):  # type: ignore[misc]
    """Pages of a list nobody counted. unfold's header leaves the number of results out for a class of this name."""

    template_name = "admin/uncounted_pagination.html"

    @cached_property
    def count(self) -> int:
        return int(self.per_page) * MOST_PAGES


class LeanChangeList(ChangeList):  # type: ignore[misc]
    """Reads only the columns that the list shows: texts stay in the database."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        queryset: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return queryset.only(*self.model_admin.list_only) if self.model_admin.list_only else queryset


class PlatformAdmin(ModelAdmin):  # type: ignore[misc]
    """Base of the admin of every model with a tenant: the rows of all tenants, under the platform role."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they count
    paginator = InfinitePaginator
    list_per_page = 25
    ordering: ClassVar[Any] = ("-id",)
    sortable_by: ClassVar[Any] = ()
    list_fullwidth = True
    list_only: ClassVar[tuple[str, ...]] = ()  # columns a list reads; empty: all

    def get_changelist(self, _request: HttpRequest, **_kwargs: Any) -> type[LeanChangeList]:
        return LeanChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        manager = getattr(self.model, "unscoped", self.model._default_manager)  # noqa: SLF001
        queryset: QuerySet[Model] = manager.order_by(*self.ordering)
        return visible_to(request.user, queryset)


class ReadOnlyAdmin(PlatformAdmin):
    """Rows that services own: nobody adds, changes or deletes them here."""

    actions: ClassVar[Any] = None

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False


class DetailAdmin(ReadOnlyAdmin):
    """Rows with a page of their own that shows what customers wrote. Every look at it is logged."""

    detail_template: ClassVar[str]
    search_fields = ("id",)  # shows the box; `search` does the work
    list_disable_select_all = True

    def search(self, queryset: QuerySet[Any], _term: str) -> QuerySet[Any]:
        """The rows a search term means."""
        return queryset

    def get_search_results(
        self, _request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        return (self.search(queryset, term) if term else queryset), False

    def detail(self, _request: HttpRequest, _obj: Any) -> dict[str, Any]:
        """What the page's template needs, read completely."""
        return {}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        _form_url: str = "",
        _extra_context: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        return self.page(request, object_id, self.detail_template, self.detail)

    def page(self, request: HttpRequest, object_id: str, template: str, detail: Any) -> HttpResponse:
        """A page about one row, for those who may view it."""
        obj = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if obj is None:
            missing: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
            return missing
        self.note(request, obj, "content viewed")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": obj,
            "title": f"{self.opts.verbose_name} {obj}",
            "is_fullwidth": "1",
            **detail(request, obj),
        }
        return TemplateResponse(request, template, context)

    def note(self, request: HttpRequest, obj: Model, message: str, action: str = audit.VIEWED) -> None:
        """The tenant's audit trail, and a line of the access log: who, what, which row of which tenant."""
        noted(request, obj, action)
        logger.info(
            message,
            extra={
                "user": request.user.get_username(),
                "object": f"{self.opts.label_lower}:{obj.pk}",
                "tenant": str(getattr(obj, "tenant_id", "")),
                "path": request.path,
            },
        )


def noted(request: HttpRequest, obj: Model, action: str, changed: Iterable[str] = ()) -> None:
    """An event of the audit trail of the row's tenant, else of the platform, by the signed-in member of the staff."""
    tenant_id = obj.pk if isinstance(obj, Tenant) else getattr(obj, "tenant_id", PLATFORM)
    with tenant_scope(tenant_id):
        name = str(obj._meta.model_name)  # noqa: SLF001
        kind = {"apikey": "key", "platformkey": "platform_key"}.get(name, name)
        audit.record(action, f"staff:{request.user.get_username()}", f"{kind}:{obj.pk}", changed)


class TenantFilter(SimpleListFilter):
    """Rows of one tenant. Offers the first few by name, and keeps the one a link chose."""

    title = "tenant"
    parameter_name = "tenant"

    def lookups(self, request: HttpRequest, _admin: DjangoModelAdmin[Any]) -> list[tuple[str, str]]:
        tenants = visible_to(request.user, Tenant.objects.order_by("name"))
        found = list(tenants.values_list("id", "name")[:MOST_TENANTS])
        chosen = _uuid(self.value() or "")
        if chosen and chosen not in dict(found):
            found += tenants.filter(id=chosen).values_list("id", "name")
        return [(str(tenant_id), name) for tenant_id, name in found]

    def has_output(self) -> bool:
        return True

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        chosen = _uuid(self.value() or "")
        return queryset.filter(tenant_id=chosen) if chosen else queryset.none()


class AgeFilter(SimpleListFilter):
    """Rows made lately: a range of ids, because ids are ordered by time."""

    title = "made in the last"
    parameter_name = "age"
    AGES: ClassVar = {
        "hour": timedelta(hours=1),
        "day": timedelta(days=1),
        "week": timedelta(days=7),
        "month": timedelta(days=30),
    }

    def lookups(self, _request: HttpRequest, _admin: DjangoModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(name, name) for name in self.AGES]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        age = self.AGES.get(self.value() or "")
        if age is None:
            return queryset
        milliseconds = int((timezone.now() - age).timestamp() * 1000)
        return queryset.filter(id__gte=UUID(int=milliseconds << 80))


def column(title: str, label: Mapping[str, str] | None = None) -> Callable[[Shown], Shown]:
    """A column of a list. `label`: its values are shown as labels of these kinds (success, info, warning, danger)."""
    decorator: Callable[[Shown], Shown] = display(description=title, label=label)
    return decorator


def times(field: str, title: str) -> Callable[[Model], str]:
    """A column that shows a time (UTC) in one form everywhere."""

    def shown(row: Model) -> str:
        value = getattr(row, field)
        return "\u2013" if value is None else f"{value:%Y-%m-%d %H:%M}"

    shown.__name__ = field
    return column(title)(shown)


def id_matches(term: str, field: str = "id") -> Q | None:
    """The condition for an id or its beginning (six hexadecimal digits or more) as a range; None for another term."""
    digits = term.lower().replace("-", "")
    if not _HEX.fullmatch(digits):
        return None
    ends = (UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))
    return Q(**{f"{field}__range": ends})


def newest_of(*found: QuerySet[Any]) -> Q:
    """The newest rows of each of these, as one condition.

    Looked up one by one: of conditions joined with OR, PostgreSQL may read the whole table from its newest row on.
    """
    ids = {key for one in found for key in one.order_by("-id").values_list("id", flat=True)[:MOST_FOUND]}
    return Q(id__in=ids)


def storable(term: str) -> bool:
    """Whether PostgreSQL can be asked about this text."""
    return "\0" not in term and term.isprintable()


def admin_url(model: type[Model], page: str, *args: Any) -> str:
    """A page of a model's admin: `change`, `changelist`, or one of its own."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)  # noqa: SLF001


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
