"""`/v1/models`."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compaction_service.api import pagination
from compaction_service.api.errors import ApiError
from compaction_service.api.views import TenantView
from compaction_service.registry import selectors
from compaction_service.registry.examples import MODEL, MODELS
from compaction_service.registry.serializers import ModelSerializer
from compaction_service.registry.specs import UnknownModel

NAME = OpenApiParameter("name", str, OpenApiParameter.PATH, description="A model's name; it may hold slashes.")
_Q = OpenApiParameter("q", str, description="Only models whose name or provider holds this, in any case.")


class ModelsView(TenantView):
    """The registry."""

    scopes = {"GET": "read"}

    @extend_schema(operation_id="models_list", summary="Models, by name", tags=["models"],
                   parameters=[_Q, *pagination.PARAMETERS],
                   responses=pagination.page_of(ModelSerializer, "ModelPage"), examples=[MODELS])  # fmt: skip
    def get(self, request: Request) -> Response:
        """What is known of each model: its window, how its tokens are counted, its prices."""
        params = request.query_params
        page = pagination.paginate(selectors.model_list(params.get("q", "")), params, order="name")
        return Response({"data": ModelSerializer(page.rows, many=True).data, "next_cursor": page.next_cursor})


class ModelView(TenantView):
    """One model."""

    scopes = {"GET": "read"}

    @extend_schema(operation_id="models_get", summary="The model that a name means", tags=["models"],
                   parameters=[NAME], responses=ModelSerializer, examples=[MODEL])  # fmt: skip
    def get(self, _request: Request, name: str) -> Response:
        """Takes a provider's prefix, a date, an alias and any case: `name` in the answer says which model that is.

        Unknown: 404 `model_not_found`, with up to five names that resemble it in `nearest`.
        """
        model = selectors.model_find(name)
        if model is None:
            raise not_found(selectors.model_unknown(name), status=404)
        return Response(ModelSerializer(model).data)


def not_found(error: UnknownModel, *, status: int, attr: str | None = None) -> ApiError:
    """The answer to a name that no model has: 404 for an address, 400 with `attr` for a field."""
    hint = f" Nearest: {', '.join(error.nearest)}." if error.nearest else ""
    return ApiError(
        status, "model_not_found", f"No model has this name.{hint}", attr=attr, extra={"nearest": list(error.nearest)}
    )
