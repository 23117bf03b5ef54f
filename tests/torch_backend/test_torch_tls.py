"""Groups of torch on several (pretended) hosts over TLS."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from test_torch_hosts import join_on_hosts, sum_in  # noqa: E402

from certificates import Authority, needs_openssl  # noqa: E402
from torch_ranks import run_ranks  # noqa: E402
from unisono import Options  # noqa: E402

pytestmark = [needs_openssl, pytest.mark.usefixtures("fork_server")]


def transports(hosts, options):
    join_on_hosts(hosts, options)
    groups = [dist.group.WORLD, dist.new_group()]
    assert [sum_in(group, 1) for group in groups] == [len(hosts)] * 2
    return [group.communicator.transport for group in groups]


def test_a_group_with_certificates_uses_tls_and_so_do_the_groups_made_from_it(tmp_path):
    options = Options(tls=Authority(tmp_path, "ours").issue("host"))
    for world, other in run_ranks(transports, 2, "ab", options, init=False):
        assert world == other
        assert world.startswith("tcp with TLS (OpenSSL 3.")
