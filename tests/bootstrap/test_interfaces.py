"""The interface for messages from other hosts is given as a name, an address or a network."""

from __future__ import annotations

import socket

import pytest

from unisono.bootstrap import network_messages
from unisono.bootstrap.interfaces import (
    Interface,
    is_loopback,
    list_interfaces,
    plain_address,
    select_address,
    source_address,
)
from unisono.errors import UsageError

INTERFACES = [
    Interface("lo", "127.0.0.1"),
    Interface("lo", "::1"),
    Interface("eth0", "10.1.2.3"),
    Interface("eth0", "fe80::1"),
    Interface("eth0", "fd00::3"),
    Interface("ib0", "192.168.7.3"),
]


@pytest.mark.parametrize(
    ("interface", "family", "address"),
    [
        ("eth0", socket.AF_INET, "10.1.2.3"),
        ("eth0", socket.AF_INET6, "fd00::3"),
        ("ib0", socket.AF_INET6, "192.168.7.3"),
        ("10.0.0.0/8", socket.AF_INET, "10.1.2.3"),
        ("192.168.0.0/16", socket.AF_INET, "192.168.7.3"),
        ("fd00::/16", socket.AF_INET, "fd00::3"),
        ("192.168.7.3", socket.AF_INET, "192.168.7.3"),
        ("::1", socket.AF_INET6, "::1"),
    ],
)
def test_an_interface_stands_for_one_address(interface, family, address):
    assert select_address(interface, family, INTERFACES) == address


@pytest.mark.parametrize("interface", ["eth1", "10.9.0.0/16", "10.1.2.4", "", "fe80::/10", "not a network/8"])
def test_an_unknown_interface_is_refused_with_the_list_of_interfaces(interface):
    with pytest.raises(UsageError) as caught:
        select_address(interface, socket.AF_INET, INTERFACES)
    assert caught.value.id == network_messages.NO_SUCH_INTERFACE.id
    assert "eth0 (10.1.2.3)" in str(caught.value)
    assert "ib0 (192.168.7.3)" in str(caught.value)


def test_the_interfaces_of_this_host_include_loopback():
    interfaces = list_interfaces()
    assert Interface("lo", "127.0.0.1") in interfaces
    assert {interface.name for interface in interfaces} <= {name for _, name in socket.if_nameindex()}


def test_every_listed_address_can_be_bound():
    for _, address in list_interfaces():
        if not address.startswith("fe80"):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with socket.socket(family) as sock:
                sock.bind((address, 0))


@pytest.mark.parametrize(
    ("address", "plain"),
    [("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::1"), ("::1", "::1")],
)
def test_addresses_are_compared_in_their_plain_form(address, plain):
    assert plain_address(address) == plain


def test_all_of_127_is_loopback():
    assert is_loopback("127.0.1.1")
    assert is_loopback("::1")
    assert not is_loopback("10.0.0.1")


def test_the_source_address_is_the_one_from_which_a_host_is_reached():
    assert source_address("127.0.0.1") == "127.0.0.1"
    for _, address in list_interfaces():
        if not address.startswith("fe80"):
            assert source_address(address) == address
    assert source_address("no-such-host.invalid") == ""
