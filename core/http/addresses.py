"""Which hosts may be connected to, and whether an address is public. Pure.

A host name says nothing about where it leads, so names are checked here and addresses once more when
connecting.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.http.messages import DownloadRefused

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"https": 443, "http": 80}
# Plain ASCII labels only: a name in other letters has no business in a provider's answer, and its conversion
# (IDNA) maps look-alikes of dots and digits onto real ones.
HOST_NAME = re.compile(
    r"^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$"
)
# Networks that lead to other addresses, or nowhere, and that `is_global` lets through on some versions of
# Python.
TRANSLATED_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "64:ff9b::/96",  # NAT64, RFC 6052
        "64:ff9b:1::/48",  # local NAT64, RFC 8215
        "2002::/16",  # 6to4, RFC 3056
        "2001::/32",  # Teredo, RFC 4380
        "::/96",  # IPv4-compatible, RFC 4291
        "::ffff:0:0/96",  # IPv4-mapped, RFC 4291
        "::ffff:0:0:0/96",  # IPv4-translated, RFC 2765
        "fec0::/10",  # site-local, RFC 3879
        "192.88.99.0/24",  # 6to4 relays, RFC 7526
        "100.64.0.0/10",  # carrier NAT, RFC 6598
    )
)


@dataclass(frozen=True)
class Origin:
    """Scheme, lower-case host (an IPv6 address without brackets) and port of an address."""

    scheme: str
    host: str
    port: int

    @property
    def is_literal(self) -> bool:
        """Whether the host is written as an IP address."""
        return parse_literal(self.host) is not None


@dataclass(frozen=True)
class AllowedOrigins:
    """The hosts that may be downloaded from.

    `hosts` are exact names for https on port 443, or with a leading `*.` any name below. `named` are the
    `host[:port]` that the operator wrote down: plain http and addresses that are not public are allowed
    there, and nowhere else (a port that is left out means 443 and 80).
    """

    hosts: frozenset[str] = frozenset()
    named: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, *, hosts: Iterable[str] = (), named: Iterable[str] = ()) -> "AllowedOrigins":
        """Build from settings. Raises `ValueError` on something that is no `host[:port]`."""
        return cls(
            frozenset(host.lower() for host in hosts),
            frozenset(pair for text in named for pair in _named_pairs(text)),
        )

    def is_named(self, origin: Origin) -> bool:
        """Whether the operator named exactly this host and port."""
        return (origin.host, origin.port) in self.named

    def is_allowed(self, origin: Origin) -> bool:
        """Whether this origin may be asked at all; its addresses are judged when connecting."""
        if self.is_named(origin):
            return True
        if origin.scheme != "https" or origin.port != DEFAULT_PORTS["https"] or origin.is_literal:
            return False
        if origin.host in self.hosts:
            return True
        return any(rule.startswith("*.") and origin.host.endswith(rule[1:]) for rule in self.hosts)


def parse_origin(url: str) -> Origin:
    """The origin of an absolute http(s) address. Raises `DownloadRefused` on any doubtful spelling.

    Refused: user info, white space and control characters, a trailing dot, names that are not plain ASCII,
    and every spelling of an IP address but the canonical one (`0x7f.1`, `2130706433`, `127.1`, zone ids).
    """
    if not url.isascii() or not url.isprintable() or any(sign in url for sign in " \\"):
        raise DownloadRefused("address_not_plain")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname
    except ValueError as error:
        raise DownloadRefused("address_not_valid") from error
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise DownloadRefused("address_not_http")
    if "@" in parts.netloc:
        raise DownloadRefused("address_with_user")
    if port == 0 or parts.netloc.endswith(":"):
        raise DownloadRefused("address_not_valid")
    host = host.lower()
    if parse_literal(host) is None and (not HOST_NAME.match(host) or _ends_numeric(host)):
        raise DownloadRefused("host_not_plain")
    return Origin(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme])


def parse_literal(host: str) -> IpAddress | None:
    """The address that a canonically written literal stands for, or None for anything else."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address


def is_public(address: IpAddress) -> bool:
    """Whether an address belongs to the public internet: no private, loopback, translated or reserved one."""
    if any(address in network for network in TRANSLATED_NETWORKS if network.version == address.version):
        return False
    return address.is_global and not (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )


def _ends_numeric(host: str) -> bool:
    """Whether resolvers would read the name as a number: its last label is decimal or hexadecimal."""
    last = host.rsplit(".", 1)[-1]
    return last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last) is not None


def _named_pairs(text: str) -> list[tuple[str, int]]:
    try:
        origin = parse_origin(f"http://{text.strip()}")
    except DownloadRefused as error:
        raise ValueError(f"not a host[:port]: {text!r}") from error
    if "/" in text:
        raise ValueError(f"not a host[:port]: {text!r}")
    has_port = urlsplit(f"//{text.strip()}").port is not None
    return [(origin.host, port) for port in ([origin.port] if has_port else DEFAULT_PORTS.values())]
