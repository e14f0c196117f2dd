"""`/v1/tenant` and `/v1/api-keys`."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api import pagination
from compaction_service.api.errors import ApiError, field_errors
from compaction_service.api.views import TenantView
from tenants import audit, examples, selectors, services
from tenants.models import Tenant
from tenants.serializers import (
    AuditEventSerializer,
    IssuedKeySerializer,
    KeyCreateSerializer,
    KeyRotateSerializer,
    KeySerializer,
    TenantChangeSerializer,
    TenantSerializer,
)
from tenants.usage import usage

ACTION = OpenApiParameter("action", str, description="Only this action, such as `key.revoked`.")
TARGET = OpenApiParameter("target", str, description="Only what was done to this: `conversation:<id>`, `key:<id>`.")
KEY_ID = OpenApiParameter("key_id", UUID, OpenApiParameter.PATH, description="The key's id, not the key.")


def _tenant_answer(tenant: Tenant) -> Response:
    return Response(TenantSerializer(tenant, context={"usage": usage()}).data)


class TenantSettingsView(TenantView):
    """The caller's own tenant."""

    scopes = {"GET": "read", "PATCH": "admin"}
    own_transactions = frozenset({"PATCH"})

    @extend_schema(operation_id="tenant_get", summary="The tenant's settings, limits and usage", tags=["tenant"],
                   responses=TenantSerializer, examples=[examples.TENANT])  # fmt: skip
    def get(self, _request: Request) -> Response:
        return _tenant_answer(selectors.tenant_get())

    @extend_schema(operation_id="tenant_update", summary="Change settings", tags=["tenant"],
                   request=TenantChangeSerializer, responses=TenantSerializer,
                   examples=[examples.CHANGE, examples.TENANT])  # fmt: skip
    def patch(self, request: Request) -> Response:
        """Objects are merged and null unsets (semantics 2). Setting a summarizer stores it; no model is called."""
        serializer = TenantChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        changes = serializer.validated_data
        summarizer = changes.pop("summarizer", None)
        try:
            if summarizer:
                services.summarizer_check(summarizer)  # resolves a host name: not inside a transaction
            with self.scope():
                if summarizer:
                    services.summarizer_set(summarizer)
                services.tenant_update(**changes)
                self.note("tenant.changed")
                return _tenant_answer(selectors.tenant_get())
        except services.TenantError as exc:
            raise field_errors(exc.errors) from exc


class KeysView(TenantView):
    """The keys of the tenant."""

    scopes = {"GET": "admin", "POST": "admin"}
    audited = {"POST": "key.created"}
    secret_answer = True

    @extend_schema(operation_id="api_keys_list", summary="Keys that are not revoked, newest first", tags=["api-keys"],
                   parameters=pagination.PARAMETERS,
                   responses=pagination.page_of(KeySerializer, "ApiKeyPage"), examples=[examples.KEYS])  # fmt: skip
    def get(self, request: Request) -> Response:
        page = pagination.paginate(selectors.key_list(), request.query_params)
        return Response({"data": KeySerializer(page.rows, many=True).data, "next_cursor": page.next_cursor})

    @extend_schema(operation_id="api_keys_create", summary="Make a key", tags=["api-keys"],
                   request=KeyCreateSerializer, responses={201: IssuedKeySerializer},
                   examples=[examples.KEY_CREATE, examples.ISSUED])  # fmt: skip
    def post(self, request: Request) -> Response:
        """The answer holds the secret, this once."""
        serializer = KeyCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return _issued(services.key_create(**serializer.validated_data))


class KeyRotateView(TenantView):
    """Replaces a key without a gap."""

    scopes = {"POST": "admin"}
    audited = {"POST": "key.rotated"}
    secret_answer = True

    @extend_schema(operation_id="api_keys_rotate", summary="Replace a key", tags=["api-keys"],
                   parameters=[KEY_ID], request=KeyRotateSerializer, responses={201: IssuedKeySerializer},
                   examples=[examples.ROTATE, examples.ISSUED])  # fmt: skip
    def post(self, request: Request, key_id: UUID) -> Response:
        """A new key with the same scopes; the old one works a while longer."""
        serializer = KeyRotateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        overlap = timedelta(seconds=serializer.validated_data["overlap_seconds"])
        issued = services.key_rotate(key_id, overlap)
        if issued is None:
            raise NotFound
        return _issued(issued)


class KeyView(TenantView):
    """One key."""

    scopes = {"DELETE": "admin"}
    audited = {"DELETE": "key.revoked"}

    @extend_schema(operation_id="api_keys_revoke", summary="Revoke a key at once", tags=["api-keys"],
                   parameters=[KEY_ID], responses={204: None})  # fmt: skip
    def delete(self, _request: Request, key_id: UUID) -> Response:
        if not services.key_revoke(key_id):
            raise NotFound
        return Response(status=204)


class AuditView(TenantView):
    """Who did what."""

    scopes = {"GET": "admin"}

    @extend_schema(operation_id="audit_list", summary="Read the audit trail", tags=["audit"],
                   parameters=[ACTION, TARGET, *pagination.PARAMETERS],
                   responses=pagination.page_of(AuditEventSerializer, "AuditPage"),
                   examples=[examples.AUDIT])  # fmt: skip
    def get(self, request: Request) -> Response:
        """Newest first. Agents' appends and contexts are not in it, and a look at one thing is told once an hour."""
        found = audit.events()
        for name in ("action", "target"):
            if (value := request.query_params.get(name)) is not None:
                if not value.isprintable():
                    raise ApiError(400, "invalid", "Must be printable.", attr=name)
                found = found.filter(**{name: value})
        page = pagination.paginate(found, request.query_params)
        rows = AuditEventSerializer(page.rows, many=True).data
        return Response({"data": rows, "next_cursor": page.next_cursor})


def _issued(issued: services.IssuedKey) -> Response:
    return Response({**KeySerializer(issued.key).data, "key": issued.secret}, status=201)
