"""The OpenAPI document and a page to read it, without a key and without the internet."""

from __future__ import annotations

from functools import cache

import orjson
from django.http import HttpRequest, HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerView

from compaction_service.api.errors import JSON_TYPE
from compaction_service.api.health import get_only
from compaction_service.api.negotiation import JSONOnly


@cache
def document() -> bytes:
    """The document as JSON; made once a process, since making it takes long and it never changes."""
    return orjson.dumps(SchemaGenerator().get_schema(request=None, public=True))  # type: ignore[no-untyped-call]


@get_only
def schema(_request: HttpRequest) -> HttpResponse:
    """`GET /v1/schema`."""
    return HttpResponse(document(), content_type=JSON_TYPE)


class DocsView(SpectacularSwaggerView):
    """`GET /docs`: Swagger UI from our own static files, so that it works offline."""

    http_method_names = ["get", "head"]  # DRF's OPTIONS asks the JSON renderer that this page does not have
    content_negotiation_class = JSONOnly
    authentication_classes = []
    permission_classes = []
    schema = None
