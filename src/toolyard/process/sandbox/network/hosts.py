"""Which hosts may be reached: names as a configuration has them, and which addresses are public."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = (80, 443)
"""What a host without a port means."""
SAFE_PORT = 443
"""Where whoever answers has to prove its name."""
ENTRY = late_pattern(r"(?P<any>\*\.)?(?P<host>\[[^\]]+\]|[^:*\s/]+)(?::(?P<port>\d{1,5}))?")
NAME = late_pattern(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
CARRIES_IPV4 = {
    ipaddress.ip_network("64:ff9b::/96"): 0,
    ipaddress.ip_network("2002::/16"): 80,
    ipaddress.ip_network("::/96"): 0,
}
"""IPv6 networks whose addresses hold an IPv4 address, and how many bits come after it."""
NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "3fff::/20", "5f00::/16")))
"""Networks that are not public, which not every version of Python knows; the first leads to IPv4 addresses of the local
network."""


class AllowedHost(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `sandbox.hosts`."""

    text: str
    """As it was written."""
    name: str
    subdomains: bool
    """Whether it means every name below, and not the name itself."""
    ports: tuple[int, ...]
    private: bool
    """Whether its address may be private: it was given as an address, so that is meant."""

    def covers(self, name: str, port: int) -> bool:
        fits = name.endswith("." + self.name) if self.subdomains else name == self.name
        return fits and port in self.ports

    def forbids(self, name: str, port: int) -> bool:
        """Whether a rule against this host is against that one: without a port it is against each."""
        is_of_group = self.text.startswith("@")
        return self.covers(name, self.ports[0]) and (is_of_group or port in self.ports or self.ports == PORTS)


class AllowedHosts:
    def __init__(self, texts: Iterable[str]) -> None:
        self._hosts = [host for text in texts for host in read_entry(text)]

    @property
    def names(self) -> list[str]:
        return [host.name for host in self._hosts]

    def find(self, name: str, port: int) -> AllowedHost | None:
        return next((host for host in self._hosts if host.covers(name, port)), None)

    def find_against(self, name: str, port: int) -> AllowedHost | None:
        """The entry of rules against hosts that is against this one."""
        return next((host for host in self._hosts if host.forbids(name, port)), None)


LOCAL_ENDINGS = (".local", ".localhost", ".internal", ".intranet", ".lan", ".home", ".corp", ".private", ".home.arpa")
"""Names that are given in networks of one's own."""


def may_be_offered(name: str) -> bool:
    """Whether somebody may be asked about a host: it is on the open internet, as far as its name tells."""
    if (address := as_address(name)) is not None:
        return is_public(address)
    return "." in name and not name.endswith(LOCAL_ENDINGS)


def invalid_hosts(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if not read_entry(text)]


def read_entry(text: str) -> list[AllowedHost]:
    """The hosts that an entry means: one, or those of a group such as `@python`."""
    if not text.startswith("@"):
        return [host] if (host := read_host(text)) else []
    from toolyard.process.sandbox.packages.host_groups import mirror_hosts, public_hosts

    names = [*mirror_hosts(text), *(f"{name}:{SAFE_PORT}" for name in public_hosts(text))]
    # A mirror is named by its owner, and most are in a network of one's own, where also the name of a public registry
    # may lead: who answers for it has to prove that name.
    hosts = [replace(host, private=True) for name in names if (host := read_host(name))]
    return [replace(host, text=f"{text} ({host.name})") for host in hosts]


def read_host(text: str) -> AllowedHost | None:
    """`example.com`, `*.example.com`, `example.com:8443`, `127.0.0.1:5432`."""
    found = ENTRY.fullmatch(text.strip())
    name = normal_name(found["host"]) if found else None
    if found is None or name is None or int(found["port"] or 1) > 65535:
        return None
    ports = (int(found["port"]),) if found["port"] else PORTS
    literal = as_address(name) is not None or name == "localhost"
    return AllowedHost(text=text, name=name, subdomains=bool(found["any"]), ports=ports, private=literal)


def normal_name(host: str) -> str | None:
    """The one way to write a name: small letters, no final dot, other scripts encoded; None when it is no name."""
    host = host.strip("[]") if host.startswith("[") else host.removesuffix(".")
    if (address := as_address(host)) is not None:
        return str(address)
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    # A name that ends in a number would be read as an address by some, and not by others.
    ends_in_number = re.fullmatch(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)", name)
    return name if len(name) <= 253 and NAME.fullmatch(name) and not ends_in_number else None


def as_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address is on the open internet; of one that holds another, whether that is."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        for network, after in CARRIES_IPV4.items():
            if address in network:
                return is_public(ipaddress.IPv4Address(int(address) >> after & 0xFFFFFFFF))
        if address.teredo is not None or address.is_site_local or any(address in one for one in NOT_PUBLIC):
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
