"""Artificial contenders: in this process, and as processes that misbehave."""

from __future__ import annotations

import sys

from unisono.bench.cases import Case
from unisono.bench.contender import Contender, Trial, TrialOptions
from unisono.bench.contender_ranks import Command, ContenderRanks


class Fake(Contender):
    """Gives prepared answers and logs its calls."""

    def __init__(self, name, call_s, log=None, communicates=True, trouble=None, wrong=0):
        self.name, self.call_s, self.communicates = name, call_s, communicates
        self.log = [] if log is None else log
        self.trouble = trouble or {}  # the exception to raise at each trial
        self.wrong = wrong
        self.options: list[TrialOptions] = []
        self.closed = 0

    def start(self):
        self.log.append(("start", self.name))

    def wait_until_ready(self):
        if "ready" in self.trouble:
            raise self.trouble["ready"]

    def measure(self, case: Case, options: TrialOptions) -> Trial:
        self.log.append((case.bytes, self.name))
        self.options.append(options)
        if len(self.options) in self.trouble:
            raise self.trouble[len(self.options)]
        calls = [self.call_s] * options.iterations
        return Trial([calls, [2 * each for each in calls]], 3 * self.call_s, self.wrong if options.check else 0)

    def close(self):
        self.closed += 1


# The first part of a rank of an artificial library; each test adds the rest.
HELLO = """
import json, mmap, os, signal, socket, subprocess, sys, time
rank, size = int(sys.argv[1]), int(sys.argv[2])
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[3])
lines = connection.makefile("rw")
def say(**answer):
    lines.write(json.dumps(answer) + "\\n")
    lines.flush()
def hello():
    say(rank=rank, size=size, version="made up", cores=[0])
def answer(command):
    say(nanoseconds=[1000 * (rank + 1)] * command["iterations"], mean_ns=5000, wrong=rank)
def obey():
    for line in lines:
        answer(json.loads(line))
"""
WELL = HELLO + "hello()\nobey()\n"


class ScriptGroup(ContenderRanks):
    """Ranks that run a script of a test."""

    library = "made-up"

    def __init__(self, script, size=2, **options):
        super().__init__("scripted", size, **options)
        self.script = script

    def commands(self, folder, ranks):
        self.folder = folder
        return [
            Command(
                [sys.executable, "-c", self.script, str(rank), str(self.size), ranks[-1]], self.rank_environment()
            )
            for rank in range(self.size)
        ]
