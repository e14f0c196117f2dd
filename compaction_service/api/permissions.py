"""What a key's scopes allow."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class HasScope(BasePermission):
    """The scope that the view lists for the method. A method that it does not list does not exist (405, later)."""

    message: str = ""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = request.user
        if caller is None:
            return False  # DRF answers 401
        method = "GET" if request.method == "HEAD" else request.method
        needed = view.scopes.get(method)
        if needed is None or needed in caller.scopes:  # type: ignore[union-attr]
            return True
        self.message = f"This key lacks the scope {needed}."
        return False


class IsPlatform(BasePermission):
    """Whoever the platform's authentication classes recognised."""

    def has_permission(self, request: Request, _view: Any) -> bool:
        return request.user is not None
