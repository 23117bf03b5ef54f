"""Contenders whose ranks are those of a job, which may be on several hosts.

Rank 0 drives the measurement. It sends each command to the other ranks through the communicator of the job; all ranks
execute it, with the same loop as on one host, and send their answers back. All contenders run in the same processes,
in turns; a rank that waits for a command sleeps.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import socket
from typing import Any

from unisono.algorithms.user_files import absolute
from unisono.bench import messages
from unisono.bench.cases import Case
from unisono.bench.contender import Contender, ContenderFailed, Trial, TrialOptions
from unisono.bench.contender_ranks import trial_of
from unisono.bench.peers import split_names
from unisono.bench.standalone.ranks.library import Library, Unsupported
from unisono.bench.standalone.ranks.loop import measure
from unisono.bench.standalone.ranks.ours import Unisono
from unisono.bootstrap.interfaces import list_interfaces
from unisono.comm.communicator import Communicator
from unisono.comm.texts import all_gather_text, broadcast_text
from unisono.errors import CommError, UsageError

LOOPBACK = "127.0.0.1"
CHECK, START, MEASURE, END = "check", "start", "measure", "end"


class Executor:
    """Executes the commands of rank 0 on a rank of the job; ``timeout_s`` limits a measured call of Unisono."""

    def __init__(self, comm: Communicator, timeout_s: float) -> None:
        self.comm = comm
        self.timeout_s = timeout_s
        self.libraries: dict[str, Library] = {}

    def execute(self, command: dict[str, Any]) -> dict[str, Any]:
        """Execute a command; return the answer. A failed communicator of the job ends the measurement."""
        name = command["library"]
        try:
            if command["do"] == CHECK:
                is_missing = name == "gloo" and importlib.util.find_spec("torch") is None
                return {"error": messages.NO_TORCH_ON_HOST(host=socket.gethostname())} if is_missing else {}
            if command["do"] == START:
                self.libraries[name] = self._start(name)
                return {"version": self.libraries[name].version}
            return measure(self.libraries[name], command)
        except Unsupported as error:
            return {"unsupported": str(error)}
        except CommError:
            raise
        except Exception as error:  # an exception of the library is its answer
            return {"error": f"{type(error).__name__}: {error}"}

    def _start(self, name: str) -> Library:
        if name == "unisono":
            measured = self.comm.duplicate()  # commands have a separate order
            measured.timeout = self.timeout_s
            return Unisono(measured)
        # Imported by name: only an environment with torch has it.
        gloo = importlib.import_module("unisono.bench.standalone.ranks.torch_distributed")
        address = self.comm.address or LOOPBACK
        interfaces = [each.name for each in list_interfaces() if each.address == address]
        if interfaces:  # otherwise Gloo takes the address that the name of the host resolves to
            os.environ["GLOO_SOCKET_IFNAME"] = interfaces[0]
        host = broadcast_text(self.comm, address)
        share = lambda text: broadcast_text(self.comm, text)  # noqa: E731
        library: Library = gloo.Gloo(gloo.StoreRendezvous(self.comm.rank, self.comm.size, host, share))
        return library

    def serve(self) -> None:
        """Execute the commands of rank 0 until it sends the last one; all ranks but rank 0 call this."""
        while (command := json.loads(broadcast_text(self.comm)))["do"] != END:
            all_gather_text(self.comm, json.dumps(self.execute(command)))
        self.close()

    def command(self, command: dict[str, Any]) -> dict[int, Any]:
        """Let all ranks execute a command; return their answers. Rank 0 calls this."""
        broadcast_text(self.comm, json.dumps(command))
        answers = all_gather_text(self.comm, json.dumps(self.execute(command)))
        return {rank: json.loads(answer) for rank, answer in enumerate(answers)}

    def end(self) -> None:
        """Let the other ranks leave ``serve``; rank 0 calls this."""
        broadcast_text(self.comm, json.dumps({"do": END}))
        self.close()

    def close(self) -> None:
        """Close the libraries."""
        for library in self.libraries.values():
            library.close()
        self.libraries = {}


class JobRanks(Contender):
    """A contender in a job, as rank 0 sees it."""

    def __init__(self, name: str, library: str, executor: Executor, algorithm: str | None = None) -> None:
        self.name, self.library, self.executor, self.algorithm = name, library, executor, algorithm

    def start(self) -> None:
        """Do nothing: the ranks run already."""

    def wait_until_ready(self) -> None:
        """Start the library on all ranks, unless another contender has done so."""
        if self.library in self.executor.libraries:
            self.version = self.executor.libraries[self.library].version
            return
        for do in (CHECK, START):  # a library starts on all ranks or on none
            answers = self.executor.command({"do": do, "library": self.library})
            for rank, answer in answers.items():
                if "error" in answer:
                    raise ContenderFailed(messages.RANK_ERROR(rank=rank, error=answer["error"]))
        self.version = answers[0]["version"]

    def measure(self, case: Case, options: TrialOptions) -> Trial:
        """Let all ranks run a trial."""
        command = {**case.as_command(), **options.__dict__, "do": MEASURE, "library": self.library}
        if self.algorithm is not None:
            command["algorithm"] = absolute(self.algorithm)
        return trial_of(self.executor.command(command))

    def close(self) -> None:
        """Do nothing: the ranks serve other contenders, too."""


def contenders_in_job(names: str, executor: Executor) -> list[Contender]:
    """Return the contenders of a list of names; UsageError unless all of them can be measured in a job."""
    contenders: dict[str, Contender] = {}
    for name, library, algorithm in check_names(names):
        contenders.setdefault(name, JobRanks(name, library, executor, algorithm))
    return list(contenders.values())


def check_names(names: str) -> list[tuple[str, str, str | None]]:
    """Return the name, the library and the algorithm of each contender; UsageError if a job cannot measure it."""
    found: list[tuple[str, str, str | None]] = []
    for name in split_names(names):
        library, _, setting = name.partition(":")
        if library not in ("unisono", "gloo") or (library == "gloo" and setting):
            raise UsageError(messages.NOT_ON_HOSTS(name=name))
        found.append((name, library, setting or None))
    return found
