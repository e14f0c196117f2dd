"""What a browser may do with our answers: a Content-Security-Policy for each kind of page."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# The admin's and the docs' own scripts are partly inline, and Alpine evaluates expressions. Nothing may be loaded from
# or sent to another host, so that a script that got in could take nothing out.
PAGES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
DATA = "default-src 'none'; frame-ancestors 'none'"


class ContentPolicyMiddleware:
    """Adds the header to every answer: data is no page, whatever it holds."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        page = response.headers.get("Content-Type", "").startswith("text/html")
        response.headers.setdefault("Content-Security-Policy", PAGES if page else DATA)
        return response
