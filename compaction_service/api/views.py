"""The base of every view of the API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar, NoReturn
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from compaction_service.api import idempotency
from compaction_service.api.authentication import PlatformKeyAuthentication, StaffAuthentication
from compaction_service.api.errors import ApiError
from compaction_service.api.parsers import read_body
from compaction_service.api.permissions import IsPlatform
from compaction_service.api.throttling import TenantThrottle, throttled
from tenants import audit
from tenants.limits import limits_of
from tenants.models import Tenant
from tenants.principal import Principal
from tenants.scope import PLATFORM, platform_scope, tenant_scope

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
METHODS = ("get", "post", "put", "patch", "delete")


class View(APIView):
    """DRF's view with one seam: `call` wraps the handler, inside the part that turns exceptions into answers."""

    http_method_names = [*METHODS, "head"]
    write_parameters: ClassVar[frozenset[str]] = frozenset()  # query parameters of methods that write
    secret_answer: ClassVar[bool] = False  # answers hold a secret: kept encrypted for repeats

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}  # DRF's would say Vary: Accept, which is not so

    def call(self, work: Callable[[], Response]) -> Response:
        """Runs the handler in its transaction."""
        raise NotImplementedError

    def body_limit(self) -> int | None:
        """Bytes a body may have, if fewer than the service allows."""
        return None

    @property
    def _key(self) -> str | None:
        return self.request.headers.get("Idempotency-Key") if self.request.method == "POST" else None

    def _once(self) -> Callable[..., Response] | None:
        """`answer_once` for this request, whose body was read before any transaction; None without a key."""
        request, key = self.request._request, self._key  # noqa: SLF001
        if key is None:
            return None
        mark = idempotency.fingerprint(request, read_body(request, self.body_limit()))
        return partial(idempotency.answer_once, key, mark, secret=self.secret_answer)

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> NoReturn:
        if request.authenticators and not request.successful_authenticator:
            raise NotAuthenticated("A key is wanted in the header `Authorization: Bearer <key>`.")
        super().permission_denied(request, message, code)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not hasattr(self, (request.method or "").lower()):
            raise MethodNotAllowed(request.method or "")  # before anything is found wrong with such a request
        if request.method in WRITES:
            # `?dry_run=true` beside a body without it would be taken for a wish, and the real thing be done.
            for name in request.query_params.keys() - self.write_parameters:
                raise ApiError(400, "unknown_parameter", "No query parameter of this request.", attr=name)
        if "HTTP_TRANSFER_ENCODING" in request.META:
            # DRF takes a request without Content-Length for one without a body, so what came in chunks is measured.
            request.META["CONTENT_LENGTH"] = str(len(read_body(request._request, self.body_limit())))  # noqa: SLF001

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.args, self.kwargs = args, kwargs
        self.request = drf_request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            self.initial(drf_request, *args, **kwargs)
            method = (request.method or "").lower()
            handler = getattr(self, method, None) if method in self.http_method_names else None
            if handler is None:
                raise MethodNotAllowed(request.method or "")
            response = self.call(partial(handler, drf_request, *args, **kwargs))
        except Exception as exc:  # noqa: BLE001  (the one place that turns exceptions into answers)
            response = self.handle_exception(exc)
        self.response = self.finalize_response(drf_request, response, *args, **kwargs)
        return self.response


class TenantView(View):
    """A view of one tenant's data. The handler runs inside one `tenant_scope`, which is one transaction: what it
    raises rolls everything back, and what it answers was committed.

    `scopes` names the scope each method needs; defining a method without one is an error. `own_transactions` names
    methods whose handler waits, and so must hold no transaction: such a handler opens scopes itself, for a short
    time each, with `self.scope()` (reads) and `self.run(work)` (the write, with its Idempotency-Key).
    """

    scopes: ClassVar[dict[str, str]] = {}
    own_transactions: ClassVar[frozenset[str]] = frozenset()
    throttle_classes = [TenantThrottle]

    audited: ClassVar[dict[str, str]] = {}  # method -> what the audit trail calls it

    # Set by a handler whose answer may hold text of a conversation, so that an erasure finds the stored answer.
    answer_conversation: UUID | None = None
    _rest_of_answer: Callable[[], None] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if missing := [m for m in METHODS if hasattr(cls, m) and m.upper() not in cls.scopes]:
            raise TypeError(f"{cls.__name__} names no scope for {', '.join(missing)}.")

    @property
    def principal(self) -> Principal:
        """The caller."""
        user: Any = self.request.user
        return user  # type: ignore[no-any-return]

    @property
    def tenant(self) -> Tenant:
        """The caller's tenant, as the key's look-up read it."""
        return self.principal.tenant

    def body_limit(self) -> int | None:
        return limits_of(self.tenant.limits).max_body_bytes

    def throttled(self, _request: Request, wait: float | None) -> NoReturn:
        raise throttled(self.tenant, wait)

    def scope(self) -> AbstractContextManager[None]:
        """A transaction of the caller's tenant."""
        return tenant_scope(self.tenant.id)

    def run(self, work: Callable[[], Response]) -> Response:
        """`work()` in a transaction of the tenant; for a POST with an Idempotency-Key once, or its stored answer."""
        if action := self.audited.get(str(self.request.method)):
            work = partial(self._audited, action, work)
        if (once := self._once()) is None:
            with self.scope():
                answer = work()
            if self._rest_of_answer is not None:
                self._rest_of_answer()
            return answer
        with self.scope():
            return once(work, conversation=lambda: self.answer_conversation)

    def add_to_answer(self, body: dict[str, Any], made: Callable[[], dict[str, Any]]) -> None:
        """Put what `made` gives into an answer, once its transaction is over: making it holds no row then. With an
        Idempotency-Key at once, since the whole answer is stored in the transaction."""
        if self._key is None:
            self._rest_of_answer = lambda: body.update(made())
        else:
            body |= made()

    def audit_target(self) -> str:
        """What the request is about, as `<kind>:<id>`."""
        return next((f"{name.removesuffix('_id')}:{value}" for name, value in self.kwargs.items()), "")

    def note(self, action: str) -> None:
        """An event of the audit trail, in the transaction at hand."""
        audit.record(action, str(self.principal), self.audit_target(), _field_names(self.request))

    def _audited(self, action: str, work: Callable[[], Response]) -> Response:
        target = self.audit_target()  # before an erasure
        response = work()
        if response.status_code < 300:
            audit.record(action, str(self.principal), target, _field_names(self.request))
        return response

    def call(self, work: Callable[[], Response]) -> Response:
        return work() if self.request.method in self.own_transactions else self.run(work)


def _field_names(request: Request) -> list[str]:
    """Names of the fields that a PATCH gives; of those that hold settings, the settings' names. All are ours."""
    if request.method != "PATCH" or not isinstance(request.data, dict):
        return []
    names = []
    for name, value in request.data.items():
        inner = value if name in ("policy", "limits", "summarizer") and isinstance(value, dict) else {}
        names += [f"{name}.{one}" for one in inner] or [name]
    return names


class PlatformView(View):
    """A view of `/v1/admin`: a platform key or a superuser's session; the handler runs in a `platform_scope`, which
    is one transaction. Its stored answers are PLATFORM's.

    The middleware has chosen the platform's role by the path, so keys and sessions are looked up under it too.
    """

    authentication_classes = [PlatformKeyAuthentication, StaffAuthentication]
    permission_classes = [IsPlatform]

    def call(self, work: Callable[[], Response]) -> Response:
        once = self._once()
        with platform_scope():
            return once(work, owner=PLATFORM) if once else work()
