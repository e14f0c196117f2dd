"""Which headers a tenant may add to its calls. Standard library only: web processes check with it too."""

from __future__ import annotations

# The provider's key, and what says how the message is framed, read and sent on: those are the client's own.
_RESERVED = frozenset(
    (
        "authorization",
        "x-api-key",
        "x-goog-api-key",
        "host",
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "accept-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "http2-settings",
        "expect",
        "cookie",
    )
)


def is_reserved(name: str) -> bool:
    """Whether the header is the client's own, in any case; "_" counts as "-", for which some servers take it."""
    plain = name.lower().replace("_", "-")
    return plain in _RESERVED or plain.startswith("proxy-")
