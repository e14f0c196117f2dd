"""Small views that the tests of this folder mount: what every endpoint shares, without one of them."""

from __future__ import annotations

from typing import Any

from django.db import DataError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api import docs, handlers, health
from compaction_service.api.errors import ApiError
from compaction_service.api.serializers import StorableJSONField, StrictSerializer
from compaction_service.api.views import PlatformView, TenantView
from tenants import services
from tenants.models import ApiKey
from tenants.scope import current_tenant

FAILURES: dict[str, Exception] = {
    "business": ApiError(
        409, "position_conflict", "No.", attr="x", headers={"Retry-After": "7"}, extra={"last_position": 4}
    ),
    "unexpected": ZeroDivisionError("secret text"),
    "database": OperationalError("connection to server at 10.0.0.1 failed"),
    "unstorable": DataError("integer out of range"),
}


class ChildSerializer(StrictSerializer):
    name = serializers.CharField()


class BodySerializer(StrictSerializer):
    number = serializers.IntegerField(required=False)
    child = ChildSerializer(required=False)
    metadata = StorableJSONField(required=False)
    made = serializers.CharField(read_only=True)


class EchoView(TenantView):
    scopes = {"POST": "write"}

    def post(self, request: Request) -> Response:
        return Response(request.data)


class StrictView(TenantView):
    scopes = {"POST": "write"}

    def post(self, request: Request) -> Response:
        serializer = BodySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(serializer.validated_data)


class FailView(TenantView):
    scopes = {"GET": "read"}

    def get(self, _request: Request, name: str) -> Response:
        raise FAILURES[name]


class WorkView(TenantView):
    """Makes a key; `?then=` says how it ends."""

    scopes = {"GET": "read", "POST": "write"}
    write_parameters = frozenset({"then", "a"})

    def get(self, _request: Request) -> Response:
        return Response({"tenant": current_tenant(), "keys": ApiKey.objects.count()})

    def post(self, request: Request) -> Response:
        issued = services.key_create(["read"], "made")
        self.answer_conversation = issued.key.id
        match request.query_params.get("then"):
            case "raise":
                raise ApiError(422, "no", "No.")
            case "refuse":
                return Response({"refused": True}, status=404)
        return Response({"id": issued.key.id}, status=201, headers={"Location": "/here", "X-Other": "1"})


class WaitView(TenantView):
    scopes = {"POST": "write"}
    own_transactions = frozenset({"POST"})

    def post(self, _request: Request) -> Response:
        outside = connection.in_atomic_block
        answer = self.run(lambda: Response({"outside": outside, "inside": connection.in_atomic_block}))
        return Response({**answer.data, "after": connection.in_atomic_block})


class AdminView(PlatformView):
    def get(self, request: Request) -> Response:
        return Response({"asker": str(request.user), "keys": ApiKey.unscoped.count()})


def broken(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret text")


def away(_request: HttpRequest) -> HttpResponse:
    raise OperationalError("connection to server at 10.0.0.1 failed")


urlpatterns = [
    path("echo", EchoView.as_view()),
    path("strict", StrictView.as_view()),
    path("fail/<str:name>", FailView.as_view()),
    path("work", WorkView.as_view()),
    path("wait", WaitView.as_view()),
    path("v1/admin/keys", AdminView.as_view()),
    path("broken", broken),
    path("away", away),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("schema", docs.schema),
]
handler400: Any = handlers.handler400
handler403: Any = handlers.handler403
handler404: Any = handlers.handler404
handler500: Any = handlers.handler500
