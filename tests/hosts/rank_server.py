"""The program of a rank on a test host: it makes calls for a test, which it reaches through a Unix socket."""

from __future__ import annotations

import json
import os
import sys
import time
from multiprocessing.connection import Client, Connection
from typing import Any

socket, paths, options = sys.argv[1:]
sys.path[:0] = json.loads(paths)

import unisono  # noqa: E402  # found through the paths of the test


def serve(line: Connection, comm: Any) -> None:
    """Make the calls that the test asks for, until it says that there are no more."""
    while (task := line.recv()) is not None:
        function, arguments = task
        try:
            answer = ("value", function(comm, *arguments))
        except unisono.UnisonoError as error:
            answer = (
                "error",
                {
                    "kind": type(error).__name__, "id": error.id, "text": str(error),
                    "rank": getattr(error, "rank", None),
                },
            )  # fmt: skip
        line.send((*answer, time.monotonic()))


with Client(socket) as line, unisono.connect(**json.loads(options)) as comm:
    line.send((comm.rank, os.getpid()))
    serve(line, comm)
