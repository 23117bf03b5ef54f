"""``unisono.connect()``: join the other ranks of this job."""

from __future__ import annotations

from os import PathLike

from unisono.bootstrap.environment import JobNetwork, RankIdentity, identity_in_job, job_network
from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.network_options import NetworkOptions, meets_over_network, plan_network
from unisono.bootstrap.tls import Tls
from unisono.comm.communicator import Communicator
from unisono.comm.links import link_rate_in_config, settle_link_rate
from unisono.comm.network_rates import tuning_for


def connect(
    *,
    timeout: float = 300.0,
    connect_timeout: float = 60.0,
    staging_bytes: int = STAGING_BYTES,
    identity: RankIdentity | None = None,
    rendezvous: str | None = None,
    token: str | None = None,
    token_file: str | PathLike[str] | None = None,
    interface: str | None = None,
    ports: range | None = None,
    transport: str | None = None,
    tls: Tls | None = None,
    link_rate: float | str | None = None,
    network: str | PathLike[str] | None = None,
) -> Communicator:
    """Join the other ranks of this job and return the communicator of all.

    It reads the environment variables of ``unisono run``, torchrun, mpirun and srun; without them, the size is 1.
    ``timeout`` is the number of seconds that a call may wait (default 300), and ``connect_timeout`` that of this
    function (default 60). ``staging_bytes`` is the shared memory of each rank (default 2 MiB; that
    of rank 0 applies to all). ``identity`` states the rank and size explicitly, to bypass the
    environment variables. For example::

        with unisono.connect() as comm:
            comm.all_reduce(x)

    The other arguments are for jobs on several hosts. ``rendezvous`` is "HOST:PORT", at which rank 0 listens while
    the ranks connect; under torchrun and srun the host is known, and the port follows from the name of the job.
    Ranks recognize each other by a token, a long random text that is the same on all of them: ``token`` states it,
    and ``token_file`` names a file with mode 0600 that holds it. ``interface`` is the name, the address or network
    (such as "10.0.0.0/8") of the interface for messages from other hosts, by default the one that reaches rank 0;
    ``ports`` is the range of ports to listen on, by default any that is free. ``transport`` carries the data:
    "tcp"; "ucx", which uses RDMA where there is any (``pip install unisono[net]``, or the UCX of the cluster); or
    "ucx:PATH", with the path of its library. By default, it is that of ``unisono run --transport``, or "tcp".
    ``tls`` names the certificates with which all connections between hosts are encrypted, over TCP:
    ``unisono.Tls(certificate=PATH, key=PATH, authority=PATH)``; by default nothing is.
    ``link_rate`` is the rate of the link of a host in bytes per second, or "measure", which takes about half a second
    for every pair of hosts; calls with ``codec="auto:..."`` depend on it. The value of rank 0 applies to all
    ranks (default: not known).
    ``network`` is the network by which algorithms are chosen where ``unisono tune`` has measured nothing: a preset or
    a TOML file (docs/networks.md), by default this machine as it was detected. That of rank 0 applies to all ranks.

    UsageError is raised if the arguments or environment variables cannot work, CollectiveTimeout if ranks are missing
    after ``connect_timeout``, MismatchError if the ranks disagree, PeerLost if a rank ends meanwhile, and CommError
    if memory or sockets are refused.
    """
    options = NetworkOptions(rendezvous, token, token_file, interface, ports, transport, tls)
    rate = link_rate_in_config(link_rate)
    tuning = tuning_for(network)
    launcher = JobNetwork()
    if identity is None:
        identity = identity_in_job()
        launcher = job_network(identity.launcher)
    if meets_over_network(identity, options):
        from unisono.bootstrap.network_membership import connect_link_over_network

        plan = plan_network(identity, options, launcher)
        link = connect_link_over_network(
            identity, plan, timeout, connect_timeout, staging_bytes, tuning, link_rate=rate
        )
    else:
        link = connect_link(timeout, connect_timeout, staging_bytes, tuning, identity)
    return settle_link_rate(Communicator(link), link.config)
