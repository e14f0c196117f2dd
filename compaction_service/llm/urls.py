"""Which base URLs a tenant may have models called at: public HTTPS hosts only, so that no tenant can make a worker
speak to the network it lives in. Standard library only: web processes check with it too.

A name's addresses can change after a check. So `check_base_url` is for the moment a URL is stored, and
`vetted_addresses` is asked again for every connection, which then goes to the address it gave.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

MAX_LENGTH = 2048
_GLOBAL_UNICAST = ip_network("2000::/3")  # all that was ever given out of IPv6; what is outside has a special purpose
# Addresses that Python calls global, but that IANA keeps for a special purpose, or that lead to a cloud's own services
# or to an IPv4 address in disguise.
_NOT_PUBLIC = tuple(
    ip_network(net)
    for net in (
        "168.63.129.16/32",  # Azure's wire server
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata among them
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",  # protocol assignments; Teredo among them
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


class UrlRefused(Exception):  # noqa: N818  # named for what happened, as callers read it
    """A base URL that may not be called. `detail` is a sentence for its owner and names no address."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def check_base_url(url: str, allow_local: bool) -> None:
    """Raise `UrlRefused` unless `url` may be called.

    HTTPS only; no credentials, no fragment; and every address its host has must be public. With `allow_local`
    (development, tests) loopback hosts are allowed as well, over plain HTTP too.
    """
    host, port, loopback_only = split_base_url(url, allow_local)
    try:
        vetted_addresses(host, port, allow_local=allow_local, loopback_only=loopback_only)
    except OSError:
        raise UrlRefused("The host name of the URL cannot be resolved.") from None


def split_base_url(url: str, allow_local: bool) -> tuple[str, int, bool]:
    """The host, the port, and whether only loopback will do, of a base URL of an acceptable form. No look-ups.

    Raises `UrlRefused` for any other form.
    """
    if len(url) > MAX_LENGTH:
        raise UrlRefused(f"The URL is longer than {MAX_LENGTH} characters.")
    # Parsers disagree about these; one of them is ours and another one connects.
    if any(c.isspace() or not c.isprintable() or c == "\\" for c in url):
        raise UrlRefused("The URL holds a blank, a backslash or a character that cannot be printed.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UrlRefused("The URL cannot be read.") from None
    if parts.scheme not in (("https", "http") if allow_local else ("https",)):
        raise UrlRefused("The URL must begin with https://.")
    if not host or port == 0:
        raise UrlRefused("The URL names no host.")
    if "@" in parts.netloc:
        raise UrlRefused("The URL must not hold a user name or a password.")
    if "#" in url:
        raise UrlRefused("The URL must not hold a fragment.")
    return host, port or (443 if parts.scheme == "https" else 80), parts.scheme == "http"


def vetted_addresses(host: str, port: int, *, allow_local: bool, loopback_only: bool = False) -> list[str]:
    """The addresses of `host`, in the resolver's order, when every one of them may be connected to.

    Raises `UrlRefused` if any may not, `OSError` if the name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise UrlRefused("The host name of the URL is not valid.") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        ip = _plain(address)
        if not (allow_local and ip.is_loopback) and (loopback_only or not _is_public(ip)):
            if loopback_only:
                raise UrlRefused("The URL must begin with https://.")
            raise UrlRefused("The host of the URL has an address that is not public.")
    return addresses


def _plain(address: str) -> IPv4Address | IPv6Address:
    ip = ip_address(address)
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return mapped or ip


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address) and ip not in _GLOBAL_UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not any(ip in net for net in _NOT_PUBLIC)
