"""The service's routes, and what they are held against."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from compaction_service.urls import urlpatterns as own
from tests.bench.service import EMPTY


class Empty(APIView):
    """An authenticated view that does nothing: plain DRF with the service's authentication and renderer."""

    scopes: ClassVar[dict[str, str]] = {"GET": "read"}

    def get(self, _request: Request) -> Response:
        return Response({})


urlpatterns = [*own, path(EMPTY.removeprefix("/"), Empty.as_view())]
