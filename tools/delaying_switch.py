"""A switch between test hosts that delays every frame, for kernels that cannot do so themselves (netem).

    python tools/delaying_switch.py MILLISECONDS PROCESS ...

creates an interface ``eth0`` on each host and carries frames between these interfaces until its standard input is
closed. A host is given by the ID of a process in its network namespace. It prints ``ready`` when the interfaces
exist. The interfaces are TAP devices: the kernel hands over complete Ethernet frames of at most the MTU.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from pathlib import Path

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
TAP_WITHOUT_HEADER = 0x0002 | 0x1000  # IFF_TAP, IFF_NO_PI
LONGEST_FRAME = 1 << 16
MOST_AT_A_TIME = 64  # frames read from one port before frames that are due are sent


def open_port(process: int) -> int:
    """Create ``eth0`` in the network namespace of a process; return the descriptor of its other end."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{process}/ns/net").open() as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace of process {process}")
    port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH22x", b"eth0", TAP_WITHOUT_HEADER))
    return port


def carry_frames(ports: list[int], delay_s: float) -> None:
    """Carry frames between the ports until standard input is closed."""
    port_of: dict[bytes, int] = {}  # by the address of the host
    waiting: deque[tuple[float, list[int], bytes]] = deque()  # all are delayed equally, so the first is due first
    while True:
        limit_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([*ports, 0], [], [], limit_s)
        if 0 in ready:
            return
        for port in ready:
            for _ in range(MOST_AT_A_TIME):
                try:
                    frame = os.read(port, LONGEST_FRAME)
                except OSError:  # no further frame, or the interface is down
                    break
                port_of[frame[6:12]] = port
                known = port_of.get(frame[:6])
                targets = [known] if known is not None else [other for other in ports if other != port]
                waiting.append((time.monotonic() + delay_s, targets, frame))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, targets, frame = waiting.popleft()
            for port in targets:
                try:
                    os.write(port, frame)
                except OSError:  # the interface is down
                    continue


def main() -> None:
    """Create the ports and carry frames."""
    delay_ms, *processes = sys.argv[1:]
    ports = [open_port(int(process)) for process in processes]
    print("ready", flush=True)
    carry_frames(ports, float(delay_ms) / 1000)


if __name__ == "__main__":
    main()
