"""Django settings. Everything that differs between machines comes from the environment (docs/configuration.md)."""

from __future__ import annotations

import secrets
from typing import Any

from compaction_service import env

DEBUG = env.boolean("DEBUG")
# Commands such as `makemigrations` and `spectacular` need no secrets; check E001 refuses to serve on made-up ones.
SECRET_KEY_IS_EPHEMERAL = not env.text("SECRET_KEY")
SECRET_KEY = env.text("SECRET_KEY") or secrets.token_urlsafe(50)
KEY_PEPPERS = env.peppers("KEY_PEPPERS")
ENCRYPTION_KEYS = env.strings("ENCRYPTION_KEYS")
ALLOWED_HOSTS = env.strings("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
ALLOW_LOCAL_MODEL_URLS = env.boolean("ALLOW_LOCAL_MODEL_URLS")
BROKER_URL = env.text("BROKER_URL")
CACHE_URL = env.text("CACHE_URL")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "tenants",
    "compaction_service.api",
    "compaction_service.registry",
    "compaction_service.conversations",
    "compaction_service.compactions",
    "compaction_service.usage",
    "compaction_service.local",
]

# Sessions, messages and CSRF serve the admin only; the API's views never touch them.
MIDDLEWARE = [
    "compaction_service.api.request_id.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "compaction_service.static.StaticMiddleware",
    "compaction_service.api.headers.ContentPolicyMiddleware",
    "tenants.middleware.PlatformMiddleware",
    "compaction_service.api.logins.LoginThrottle",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "compaction_service.urls"
WSGI_APPLICATION = "compaction_service.wsgi.application"
APPEND_SLASH = False  # the API's paths have no trailing slash; a redirect would turn a POST into a GET

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _database(name: str, pool_size: int = 0) -> dict[str, Any]:
    """The database of one role; the dummy engine where no URL is set, so that settings import without a server."""
    entry = env.database(name) or {"ENGINE": "django.db.backends.dummy"}
    if pool_size and "OPTIONS" in entry:
        # A request that finds no free connection within three seconds is told 503 instead of queueing without end.
        entry["OPTIONS"]["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": 3}
    return entry


DATABASES = {
    # One connection for each web thread: a request holds at most one. The platform serves the admin and /v1/admin only.
    "default": _database("APP_DATABASE_URL", env.integer("DATABASE_POOL_SIZE", 16, minimum=1)),
    "platform": _database("PLATFORM_DATABASE_URL", env.integer("PLATFORM_POOL_SIZE", 4, minimum=1)),
    "owner": _database("DATABASE_URL"),
}
DATABASE_ROUTERS = ["compaction_service.routers.RoleRouter"]
APP_ROLE = DATABASES["default"].get("USER") or "compaction_app"
PLATFORM_ROLE = DATABASES["platform"].get("USER") or "compaction_platform"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["tenants.members.MemberBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
# An image collects the files at build time and sets STATIC_ROOT; a laptop serves them from the packages.
STATIC_ROOT = env.text("STATIC_ROOT") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
WHITENOISE_AUTOREFRESH = False

# Behind a TLS proxy: HTTPS=true. The proxy must set X-Forwarded-Proto itself, never pass a client's on.
HTTPS = env.boolean("HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SESSION_COOKIE_AGE = 12 * 3600  # a working day
CSRF_COOKIE_HTTPONLY = True
# The proxy redirects to HTTPS and knows the domain's other names; we do not.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
CSRF_TRUSTED_ORIGINS = env.strings("CSRF_TRUSTED_ORIGINS")
X_FRAME_OPTIONS = "DENY"

# A worker has no port of its own; 0: its metrics are not served.
WORKER_METRICS_PORT = env.integer("WORKER_METRICS_PORT", 0, minimum=0)

# Times of the worker, in seconds, each shorter than the next: check E004 and the worker's start refuse others.
MODEL_CALL_TIMEOUT = env.integer("MODEL_CALL_TIMEOUT", 120, minimum=1)
PASS_DEADLINE = env.integer("PASS_DEADLINE", 240, minimum=1)
BROKER_REDELIVERY = env.integer("BROKER_REDELIVERY", 900, minimum=1)
# Retries of one call, and the end of all calls of one compaction.
MODEL_ATTEMPTS = env.integer("MODEL_ATTEMPTS", 5, minimum=1)
MODEL_RETRY_SECONDS = env.integer("MODEL_RETRY_SECONDS", 30)
COMPACTION_DEADLINE = env.integer("COMPACTION_DEADLINE", 3600, minimum=1)
WORKER_GRACE = env.integer("WORKER_GRACE", 25)

# The API's own parser bounds its bodies; this is the bound of the admin's forms.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
MAX_BODY_BYTES = env.integer("MAX_BODY_BYTES", 32 * 1024 * 1024, minimum=1024)

# A waiting request holds one of the server's threads: they may take a share of them, and others then do not wait.
WAITING_REQUESTS = max(1, env.integer("DATABASE_POOL_SIZE", 16, minimum=1) // 2)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["compaction_service.api.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["compaction_service.api.permissions.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["compaction_service.api.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["compaction_service.api.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "compaction_service.api.negotiation.JSONOnly",
    "DEFAULT_SCHEMA_CLASS": "compaction_service.api.schema.AutoSchema",
    "EXCEPTION_HANDLER": "compaction_service.api.handlers.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "NON_FIELD_ERRORS_KEY": "non_field_errors",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Conversation compaction service",
    "DESCRIPTION": (
        "Store a conversation, and read back a context that fits its model. An agent's loop is two calls: append what "
        "was said (`POST /v1/conversations/{ref}/messages`), and before each call of the model read what to send "
        "(`GET /v1/conversations/{ref}/context`). `docs/quickstart.md` in the repository has it as a script, "
        "`docs/api.md` what all operations share."
    ),
    "VERSION": "1",
    # 3.1: a nullable field is plain JSON Schema there (`type: [string, "null"]`), so that any validator can judge our
    # answers by the document, and openapi-python-client reads it. In 3.0 null has no type of its own.
    "OAS_VERSION": "3.1.0",
    "TAGS": [
        {"name": "conversations", "description": "An agent's conversation: its model, its policy, its meter."},
        {"name": "messages", "description": "The originals, stored as they came and never changed."},
        {"name": "context", "description": "What the agent sends next."},
        {"name": "compactions", "description": "Jobs while they are live, the log ever after."},
        {"name": "summaries", "description": "The chain of nodes that stand for covered messages."},
        {"name": "tools", "description": "Tools for the agent's model."},
        {"name": "tokens", "description": "Counting what is not stored."},
        {"name": "models", "description": "The registry: windows, tokenizers, prices."},
        {"name": "usage", "description": "What was used and what it cost."},
        {"name": "tenant", "description": "The caller's own settings."},
        {"name": "api-keys", "description": "The caller's keys."},
        {"name": "audit", "description": "Who looked at content, and who changed, reverted or erased something."},
        {"name": "admin", "description": "For the platform: all tenants. Needs a platform key or a staff session."},
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/v1",
    # Requests and answers have serializers of their own, whose names are then the names in generated clients.
    "COMPONENT_SPLIT_REQUEST": False,
    "COMPONENT_SPLIT_PATCH": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "TenantStatus": "tenants.models.Tenant.Status",
        "Scope": "tenants.models.Scope",
        "Format": "compaction_service.conversations.models.Format",
        "CompactionState": "compaction_service.conversations.models.CompactionState",
        "CompactionStatus": "compaction_service.compactions.models.Status",
        "Outcome": "compaction_service.compactions.models.Outcome",
        "Trigger": "compaction_service.compactions.models.Trigger",
        "RequestedTrigger": ["manual", "overflow"],
        "SummaryMethod": "compaction_service.compactions.models.Method",
        "Review": "compaction_service.compactions.models.Review",
        "PassKind": "compaction_service.compactions.models.PassKind",
        "PassStatus": "compaction_service.compactions.models.PassStatus",
        "NodeState": "compaction_service.compactions.models.NodeState",
        "CountMethod": ["exact", "estimate", "calibrated"],
        "WindowSource": ["registry", "override", "request"],
        "ModelSource": "compaction_service.registry.models.Source",
        "ModelCountMethod": ["exact", "estimate"],
        "Tokenizer": "compaction_service.tokens.families.TOKENIZERS",
        "UsageGroup": "compaction_service.usage.selectors.GROUPS",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "compaction_service.api.schema.add_shared_parts",
    ],
}

# The admin's look and its sidebar. Everything it loads comes from the packages' own static files.
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Compaction service",
    "SITE_HEADER": "Compaction service",
    "SITE_SYMBOL": "compress",
    "SITE_URL": "/docs",
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": ["/static/tenants/admin.css"],
    "SIDEBAR": {"navigation": "tenants.navigation.sidebar"},
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "compaction_service.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # Django's own handlers would mail or print a second time; `django.request` repeats what our access line says.
        "django": {"handlers": [], "propagate": True, "level": "INFO"},
        "django.server": {"handlers": ["stderr"], "propagate": False, "level": "WARNING"},
        "django.request": {"level": "CRITICAL"},
        # An error with a traceback for every scanner that guesses a Host; our line of the request says 400.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # A line for each message received and done; what a job did is in its rows.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
    },
}
