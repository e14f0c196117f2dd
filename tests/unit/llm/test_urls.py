from __future__ import annotations

import socket
from ipaddress import ip_network
from typing import Any

import pytest

from compaction_service.llm.urls import UrlRefused, check_base_url, vetted_addresses


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say what every name resolves to."""

    def to(*addresses: str) -> None:
        entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)

    return to


@pytest.mark.parametrize("allow_local", [False, True])
def test_check_base_url__public_https_host__passes(resolve: Any, allow_local: bool) -> None:
    resolve("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")

    check_base_url("https://models.example:8443/v1?region=eu", allow_local)


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",  # noqa: S104  # an address to refuse
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "192.88.99.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::1",
        "2001:0:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%2",
        "ff02::1",
    ],
)
def test_check_base_url__any_address_not_public__refuses(resolve: Any, address: str) -> None:
    resolve("93.184.216.34", address)

    with pytest.raises(UrlRefused) as caught:
        check_base_url("https://models.example/v1", allow_local=False)

    assert address not in caught.value.detail  # nobody is to map our network with it


# IANA's special-purpose registries of both families, without what they call globally reachable outside of 2001::/23 and
# 192.0.0.0/24; multicast; and what was once given out for a site. Mapped IPv4 addresses count as what they map.
SPECIAL = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/31", "192.0.2.0/24"),
    *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4"),
    *("240.0.0.0/4", "255.255.255.255/32"),
    *("::1/128", "::/128", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64"),
    *("2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32"),
    *("2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "3fff::/20"),
    *("5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]
PUBLIC = [
    "1.1.1.1",
    "93.184.216.34",
    "198.17.255.255",
    "2001:200::1",
    "2606:4700::1111",
    "2a00:1450::1",
    "3fff:1000::1",
]


@pytest.mark.parametrize("block", SPECIAL)
@pytest.mark.parametrize("end", [0, -1])
def test_vetted_addresses__special_purpose_block__is_refused_to_its_ends(resolve: Any, block: str, end: int) -> None:
    resolve(str(ip_network(block)[end]))

    with pytest.raises(UrlRefused):
        vetted_addresses("models.example", 443, allow_local=False)


@pytest.mark.parametrize("address", PUBLIC)
def test_vetted_addresses__address_given_out__passes(resolve: Any, address: str) -> None:
    resolve(address)

    assert vetted_addresses("models.example", 443, allow_local=False) == [address]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "[::1]", "localhost"]
)
def test_check_base_url__loopback_in_any_spelling__is_allowed_only_locally(host: str) -> None:
    check_base_url(f"http://{host}:8000/v1", allow_local=True)

    with pytest.raises(UrlRefused):
        check_base_url(f"https://{host}:8000/v1", allow_local=False)


@pytest.mark.parametrize("address", ["93.184.216.34", "10.1.2.3"])
def test_check_base_url__plain_http_elsewhere__is_refused_locally_too(resolve: Any, address: str) -> None:
    resolve("127.0.0.1", address)

    with pytest.raises(UrlRefused):
        check_base_url("http://models.example/v1", allow_local=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "models.example/v1",
        "//models.example/v1",
        "http://models.example/v1",
        "ftp://models.example",
        "file:///etc/passwd",
        "https://",
        "https:///v1",
        "https://models.example:0/",
        "https://models.example:99999/",
        "https://models.example:http/",
        "https://user@models.example/",
        "https://user:password@models.example/",
        "https://@models.example/",
        "https://models.example/#fragment",
        "https://models.example/#",
        "https://models.example\\@other.example/",
        "https://models.example/\n",
        " https://models.example/",
        "https://models.exa\x00mple/",
        "https://[::1/",
        "https://[not-an-address]/",
        "https://models..example/",
        "https://" + "a" * 70 + ".example/",
        "https://models.example/" + "a" * 2048,
    ],
)
def test_check_base_url__form_not_acceptable__refuses(url: str) -> None:
    with pytest.raises(UrlRefused):
        check_base_url(url, allow_local=False)


def test_check_base_url__name_nobody_knows__refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    with pytest.raises(UrlRefused, match="cannot be resolved"):
        check_base_url("https://nowhere.example/v1", allow_local=False)


def test_vetted_addresses__several__keeps_the_resolvers_order_without_repeats(resolve: Any) -> None:
    resolve("93.184.216.35", "93.184.216.34", "93.184.216.35")

    assert vetted_addresses("models.example", 443, allow_local=False) == ["93.184.216.35", "93.184.216.34"]
