"""The OpenAPI document: what drf-spectacular finds, plus what every operation shares."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as SpectacularAutoSchema

from compaction_service.api.errors import JSON_TYPE
from compaction_service.api.serializers import StrictSerializer

ERROR_REF = {"$ref": "#/components/schemas/Error"}
ERROR = {
    "type": "object",
    "description": "Every failure has this shape. Some codes add members of their own beside these.",
    "required": ["type", "errors", "request_id"],
    "properties": {
        "type": {
            "type": "string",
            "enum": ["validation_error", "client_error", "server_error"],
            "description": "Whose fault it is; validation_error: the request's fields.",
        },
        "errors": {
            "type": "array",
            "description": "All that is wrong, at least one.",
            "minItems": 1,
            "items": {
                "type": "object",
                "description": "One thing that is wrong.",
                "required": ["code", "detail", "attr"],
                "properties": {
                    "code": {"type": "string", "description": "Stable; for programs.", "examples": ["not_found"]},
                    "detail": {"type": "string", "description": "For people.", "examples": ["Not found."]},
                    "attr": {
                        "type": ["string", "null"],
                        "description": "The field or parameter at fault, as a path.",
                        "examples": ["policy.threshold"],
                    },
                },
            },
        },
        "request_id": {"type": ["string", "null"], "description": "Names this request in the logs."},
    },
    "example": {
        "type": "validation_error",
        "errors": [{"code": "invalid", "detail": "Must be from 0 to 1.", "attr": "policy.threshold"}],
        "request_id": "0198c0ffee007000a000000000000001",
    },
}
RESPONSES = {
    "400": "The request cannot be understood, or a field is wrong.",
    "401": "The key is missing, unknown, expired or revoked.",
    "403": "The key lacks the scope, or the tenant is suspended.",
    "404": "There is no such thing, or it belongs to another tenant.",
    "405": "The method does not exist here.",
    "409": "The request does not fit the present state, or its Idempotency-Key is in use.",
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "422": "The request is understood and cannot be fulfilled.",
    "429": "The tenant's requests per minute are used up.",
    "500": "The server failed.",
    "503": "The database is not available.",
}
SUCCESSES = {"200": "Done.", "201": "Created.", "204": "Done; there is nothing to say."}
WITH_BODY = ("post", "put", "patch")
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes the request safe to repeat: the stored answer again for 24 hours, with the header "
    "`Idempotency-Replayed: true`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}


class AutoSchema(SpectacularAutoSchema):
    """Operations are named `<resource>_<verb>` by hand: a generated client's names must not change by accident."""

    def get_operation_id(self) -> str:
        raise ValueError(f"{self.method} {self.path} needs @extend_schema(operation_id=...).")

    def get_tags(self) -> list[str]:
        """The resource, which is the operation's name without its verb."""
        return [self.get_operation_id().rpartition("_")[0]]

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """What refuses unknown fields says so."""
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        return {**schema, "additionalProperties": False} if isinstance(serializer, StrictSerializer) else schema


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """`Authorization: Bearer ck_...`"""

    target_class = "compaction_service.api.authentication.KeyAuthentication"
    name = "key"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A key of the tenant: `ck_<prefix>_<secret>`."}


class PlatformKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """`Authorization: Bearer cp_...`"""

    target_class = "compaction_service.api.authentication.PlatformKeyAuthentication"
    name = "platform_key"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A key of the platform: `cp_<prefix>_<secret>`."}


class StaffScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The admin's session."""

    target_class = "compaction_service.api.authentication.StaffAuthentication"
    name = "staff_session"

    def get_security_definition(self, _auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


def add_shared_parts(result: Any, **_kwargs: Any) -> Any:
    """Postprocessing: the error answers of every operation, and Idempotency-Key on every POST."""
    schemas = result["components"].setdefault("schemas", {})
    schemas["Error"] = ERROR
    if schemas.pop("NullEnum", None):
        _say_null(result)
    for operations in result["paths"].values():
        for method, operation in operations.items():
            for status in _statuses(method, operation):
                response = operation["responses"].setdefault(status, {"description": RESPONSES[status]})
                response["description"] = response["description"] or RESPONSES[status]
                response.setdefault("content", {JSON_TYPE: {"schema": ERROR_REF}})
            for status, description in SUCCESSES.items():
                if status in operation["responses"]:
                    answer = operation["responses"][status]
                    answer["description"] = answer["description"] or description
            if method == "post":
                operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    return result


def _say_null(value: Any) -> None:
    """A choice that may be null: with 3.1's own null type instead of an enumeration of nothing else."""
    if isinstance(value, dict):
        if value.get("$ref") == "#/components/schemas/NullEnum":
            del value["$ref"]
            value["type"] = "null"
        for inner in value.values():
            _say_null(inner)
    elif isinstance(value, list):
        for inner in value:
            _say_null(inner)


def _statuses(method: str, operation: dict[str, Any]) -> list[str]:
    found = {"400", "401", "403", "405", "429", "500", "503"}
    if any(parameter["in"] == "path" for parameter in operation.get("parameters", [])):
        found.add("404")
    if method in WITH_BODY:
        found |= {"409", "413", "415"}
    # 404, 409 and 422 of a single operation are declared there with None for a body, and get the error's shape here.
    found |= {status for status in operation["responses"] if status in RESPONSES}
    return sorted(found)
