"""``python -m ranks LIBRARY SOCKET``: connect to the driver, and measure on command until it disconnects."""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
import sys
import threading
import time
from typing import Any

from .library import Library, Unsupported
from .loop import measure

GRACE_S = 5.0  # for a rank to exit by itself when the driver is gone
# Only the requested one is imported, because an environment has only one of them.
LIBRARIES = {
    "mpi": "mpi:Mpi", "gloo": "torch_distributed:Gloo", "torch": "torch_distributed:Ours", "unisono": "ours:Unisono",
    "memory": "memory:Memory",
}  # fmt: skip


def load(name: str) -> Library:
    """Start a library."""
    module, _, kind = LIBRARIES[name].partition(":")
    library: Library = getattr(importlib.import_module(f".{module}", __package__), kind)()
    return library


def end_with(connection: socket.socket) -> None:
    """Exit if the driver is gone and the main thread, which may be blocked in a collective, does not notice."""
    hang_up = select.poll()
    hang_up.register(connection, select.POLLRDHUP)
    hang_up.poll()
    time.sleep(GRACE_S)
    os._exit(3)


def main() -> int:
    """Connect, and execute commands until the driver disconnects."""
    if "BIND_TO_CORE" in os.environ:
        os.sched_setaffinity(0, {int(os.environ["BIND_TO_CORE"])})
    library = load(sys.argv[1])
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[2])
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    with connection.makefile("rw", encoding="utf-8") as lines:

        def reply(answer: dict[str, Any]) -> None:
            lines.write(json.dumps(answer) + "\n")
            lines.flush()

        cores = sorted(os.sched_getaffinity(0))
        reply(
            {
                "rank": library.rank,
                "size": library.size,
                "version": library.version,
                "cores": cores,
                "pid": os.getpid(),
            }
        )
        for line in lines:
            try:
                reply(measure(library, json.loads(line)))
            except Unsupported as error:
                reply({"unsupported": str(error)})
            except Exception as error:  # an exception of the library is its answer
                reply({"error": f"{type(error).__name__}: {error}"})
    library.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
