"""`/v1/admin/models`: overrides by hand, and litellm's file taken in anew."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api.errors import ApiError
from compaction_service.api.views import PlatformView
from compaction_service.registry import examples, selectors, services
from compaction_service.registry.models import Model
from compaction_service.registry.serializers import DriftSerializer, ModelSerializer, OverrideSerializer
from compaction_service.registry.views import NAME, not_found
from tenants import audit


class AdminModelView(PlatformView):
    """One model's overrides."""

    @extend_schema(
        operation_id="admin_models_override",
        summary="Set values of a model by hand",
        description=(
            "Windows, prices and tokenizer of a model, where litellm's list is wrong or knows none: they hold for"
            " all tenants and survive every sync. Null gives litellm's value back. A name that is not listed is "
            "added."
        ),
        tags=["admin"],
        parameters=[NAME],
        request=OverrideSerializer,
        responses=ModelSerializer,
        examples=[examples.OVERRIDE, examples.MODEL],
    )
    def patch(self, request: Request, name: str) -> Response:
        serializer = OverrideSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            row = services.override_set(name, **serializer.validated_data)
        except services.RegistryError as error:
            raise ApiError(400, "invalid", error.detail, attr=error.field) from None
        audit.record_of_platform("model.changed", str(request.user), f"model:{name}", serializer.validated_data)
        return Response(ModelSerializer(row).data)

    @extend_schema(
        operation_id="admin_models_clear",
        summary="Undo all overrides of a model",
        description=(
            "Every value is litellm's again; a model that litellm does not list is removed. 404 for an unknown name."
        ),
        tags=["admin"],
        parameters=[NAME],
        responses={204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        if not Model.objects.filter(name=name).exists():
            raise not_found(selectors.model_unknown(name), status=404)
        services.override_clear(name)
        audit.record_of_platform("model.cleared", str(request.user), f"model:{name}")
        return Response(status=204)


class AdminModelSync(PlatformView):
    """litellm's file."""

    @extend_schema(
        operation_id="admin_models_sync",
        summary="Take in litellm's file of models",
        description=(
            "Brings the registry to the list of the installed version of litellm, and answers with how many "
            "models were added, changed, the same or absent. Nothing is downloaded. Overridden values stay."
        ),
        tags=["admin"],
        request=None,
        responses={200: DriftSerializer},
        examples=[examples.DRIFT],
    )
    def post(self, request: Request) -> Any:
        counts = services.sync().counts
        audit.record_of_platform("models.synced", str(request.user))
        return Response(counts)
