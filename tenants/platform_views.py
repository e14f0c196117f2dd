"""`/v1/admin/tenants`: what the platform does with tenants."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api import pagination
from compaction_service.api.errors import ApiError, field_errors
from compaction_service.api.renderers import dumps
from compaction_service.api.views import PlatformView
from tenants import audit, examples, selectors, services, whole
from tenants.models import Scope, Tenant
from tenants.scope import tenant_scope
from tenants.serializers import (
    IssuedTenantSerializer,
    PlatformTenantChangeSerializer,
    PlatformTenantCreateSerializer,
    PlatformTenantSerializer,
    TenantErasureSerializer,
)

TENANT_ID = OpenApiParameter("tenant_id", UUID, OpenApiParameter.PATH, description="The tenant's id.")


class TenantsView(PlatformView):
    """All tenants."""

    secret_answer = True

    @extend_schema(
        operation_id="admin_tenants_list",
        summary="List tenants",
        description="Every customer of the service with its state, share of the workers and limits, newest first.",
        tags=["admin"],
        parameters=pagination.PARAMETERS,
        responses=pagination.page_of(PlatformTenantSerializer, "TenantPage"),
        examples=[examples.PLATFORM_TENANTS],
    )
    def get(self, request: Request) -> Response:
        page = pagination.paginate(selectors.tenant_list(), request.query_params)
        rows = PlatformTenantSerializer(page.rows, many=True).data
        return Response({"data": rows, "next_cursor": page.next_cursor})

    @extend_schema(
        operation_id="admin_tenants_create",
        summary="Create a tenant",
        description=(
            "The tenant and its first key, with all scopes, in one transaction. The key is shown in this answer "
            "only: send an Idempotency-Key, and a lost answer can be asked for again. 409 `name_taken` for a name"
            " in use."
        ),
        tags=["admin"],
        request=PlatformTenantCreateSerializer,
        responses={201: IssuedTenantSerializer},
        examples=[examples.PLATFORM_CREATE, examples.PLATFORM_ISSUED],
    )
    def post(self, request: Request) -> Response:
        given = _validated(PlatformTenantCreateSerializer(data=request.data))
        try:
            with transaction.atomic(using="platform"):
                tenant = services.tenant_create(given["name"], given.get("limits"), given["weight"])
        except services.TenantError as exc:
            raise field_errors(exc.errors) from exc
        except IntegrityError as exc:
            raise ApiError(409, "name_taken", "There is a tenant of this name.", attr="name") from exc
        with tenant_scope(tenant.id):
            audit.record("tenant.created", str(request.user), f"tenant:{tenant.id}")
            issued = services.key_create([Scope.ADMIN.value], "first key")
        return Response({**PlatformTenantSerializer(tenant).data, "key": issued.secret}, status=201)


class TenantView(PlatformView):
    """One tenant."""

    @extend_schema(
        operation_id="admin_tenants_get",
        summary="Read a tenant",
        description=(
            "Its state, share of the workers, and limits: those set for it over the defaults; null is no limit. "
            "Nothing of what it stores."
        ),
        tags=["admin"],
        parameters=[TENANT_ID],
        responses=PlatformTenantSerializer,
        examples=[examples.PLATFORM_TENANT],
    )
    def get(self, _request: Request, tenant_id: UUID) -> Response:
        return Response(PlatformTenantSerializer(_tenant(tenant_id)).data)

    @extend_schema(
        operation_id="admin_tenants_update",
        summary="Change a tenant's limits, state or weight",
        description=(
            "Only what is given changes; limits are merged, and null gives one its default back. While a tenant "
            "is suspended its keys are refused with 403 `tenant_suspended`, and nothing it has is lost."
        ),
        tags=["admin"],
        parameters=[TENANT_ID],
        request=PlatformTenantChangeSerializer,
        responses=PlatformTenantSerializer,
        examples=[examples.SUSPEND, examples.PLATFORM_TENANT],
    )
    def patch(self, request: Request, tenant_id: UUID) -> Response:
        given = _validated(PlatformTenantChangeSerializer(data=request.data))
        _tenant(tenant_id)
        try:
            if "limits" in given:
                services.tenant_set_limits(tenant_id, given["limits"])
        except services.TenantError as exc:
            raise field_errors(exc.errors) from exc
        if "status" in given:
            services.tenant_set_status(tenant_id, Tenant.Status(given["status"]))
        if "weight" in given:
            services.tenant_set_weight(tenant_id, given["weight"])
        names = [name for name in given if name != "limits"] + [f"limits.{name}" for name in given.get("limits", {})]
        with tenant_scope(tenant_id):
            audit.record("limits.changed", str(request.user), f"tenant:{tenant_id}", names)
        return Response(PlatformTenantSerializer(_tenant(tenant_id)).data)

    @extend_schema(
        operation_id="admin_tenants_delete",
        summary="Delete a tenant and all it has",
        description=(
            "Every row of every table, with a receipt of counts. It must be suspended first (409 "
            "`tenant_active`). There is no way back: export it before."
        ),
        tags=["admin"],
        parameters=[TENANT_ID],
        responses={200: TenantErasureSerializer, 409: None},
        examples=[examples.ERASED],
    )
    def delete(self, request: Request, tenant_id: UUID) -> Response:
        _tenant(tenant_id)
        try:
            counts = whole.tenant_delete(tenant_id)
        except ValueError:
            raise ApiError(409, "tenant_active", "Suspend the tenant first.") from None
        audit.record_of_platform("tenant.deleted", str(request.user), f"tenant:{tenant_id}")
        return Response({"id": tenant_id, "erased_at": timezone.now(), "counts": counts})


class TenantExportView(PlatformView):
    """All of a tenant."""

    @extend_schema(
        operation_id="admin_tenants_export",
        summary="Export a tenant",
        description=(
            "JSON Lines, streamed: `{table, row}` for every row of every table, the tenant's own first. Keys and "
            "secrets are left out. The tenant's audit trail tells of it."
        ),
        tags=["admin"],
        parameters=[TENANT_ID],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request, tenant_id: UUID) -> Any:
        _tenant(tenant_id)
        with tenant_scope(tenant_id):
            audit.record("tenant.exported", str(request.user), f"tenant:{tenant_id}")
        lines = (dumps(line) + b"\n" for line in whole.tenant_export(tenant_id))
        return StreamingHttpResponse(lines, content_type="application/x-ndjson")


def _tenant(tenant_id: UUID) -> Tenant:
    try:
        return selectors.tenant_get(tenant_id)
    except Tenant.DoesNotExist:
        raise NotFound from None


def _validated(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data
