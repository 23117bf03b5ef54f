"""The network interfaces of this host, and the address that a rank uses for messages from other hosts."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from unisono.bootstrap import network_messages as messages
from unisono.errors import UsageError
from unisono.message import listed

# Requests and attributes of rtnetlink(7), which Python has no names for.
RTM_GETADDR, RTM_NEWADDR, NLMSG_ERROR, NLMSG_DONE = 22, 20, 2, 3
NLM_F_REQUEST_DUMP = 0x301
IFA_ADDRESS, IFA_LOCAL = 1, 2
HEADER, ADDRESS, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=HH")
READ_BYTES = 1 << 16
ANY_PORT = 9


class Interface(NamedTuple):
    """An address of a network interface."""

    name: str
    address: str


def list_interfaces() -> list[Interface]:
    """Return the addresses of all interfaces; an interface may have several."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        body = ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        netlink.send(HEADER.pack(HEADER.size + len(body), RTM_GETADDR, NLM_F_REQUEST_DUMP, 1, 0) + body)
        interfaces: list[Interface] = []
        while True:
            for kind, payload in _messages(netlink.recv(READ_BYTES)):
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    return interfaces
                if kind == RTM_NEWADDR and (interface := _interface(payload)) is not None:
                    interfaces.append(interface)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= HEADER.size:
        length, kind, *_ = HEADER.unpack_from(data)
        yield kind, data[HEADER.size : length]
        data = data[_aligned(length) :]


def _interface(payload: bytes) -> Interface | None:
    family, _, _, _, index = ADDRESS.unpack_from(payload)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    attributes, rest = {}, payload[ADDRESS.size :]
    while len(rest) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(rest)
        attributes[kind] = rest[ATTRIBUTE.size : length]
        rest = rest[_aligned(max(length, ATTRIBUTE.size)) :]
    packed = attributes.get(IFA_LOCAL) or attributes.get(IFA_ADDRESS)
    if not packed:
        return None
    try:
        return Interface(socket.if_indextoname(index), socket.inet_ntop(family, packed))
    except OSError:  # it has just been removed
        return None


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def select_address(interface: str, family: int, interfaces: Sequence[Interface]) -> str:
    """Return the address that ``interface`` stands for: an interface name, an address, or a network.

    Where an interface has several addresses, one of ``family`` is preferred (socket.AF_INET or AF_INET6).
    """
    try:
        network = ipaddress.ip_network(interface, strict=False)
    except ValueError:
        found = [each.address for each in interfaces if each.name == interface]
    else:
        found = [each.address for each in interfaces if ipaddress.ip_address(each.address) in network]
    usable = [address for address in found if not ipaddress.ip_address(address).is_link_local]
    if not usable:
        known = listed(f"{each.name} ({each.address})" for each in interfaces)
        raise UsageError(messages.NO_SUCH_INTERFACE(interface=interface, known=known))
    version = 6 if family == socket.AF_INET6 else 4
    return min(usable, key=lambda address: ipaddress.ip_address(address).version != version)


def source_address(host: str) -> str:
    """Return the address from which this host sends packets to ``host``; empty if it has no route to it."""
    try:
        found = socket.getaddrinfo(host, ANY_PORT, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return ""
    for family, kind, _, _, address in found:
        with suppress(OSError), socket.socket(family, kind) as sock:
            sock.connect(address)  # of a datagram socket: selects the route, and sends nothing
            return plain_address(sock.getsockname()[0])
    return ""


def is_loopback(address: str) -> bool:
    """Return whether an address reaches only processes in the same network namespace."""
    return ipaddress.ip_address(address).is_loopback


def plain_address(address: str) -> str:
    """Return a numeric address without its scope; an IPv4 address that is written as IPv6 is returned as IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
