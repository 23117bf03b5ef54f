"""Runs Python code as a pure-Python wheel on macOS or Windows would: without the engine and what only Linux has.

Nothing here is Windows: the code runs on Linux, where the modules and the attributes that macOS or Windows lacks have
been removed before Unisono is imported. What differs in any other way, such as paths, is not tested.
"""

from __future__ import annotations

import subprocess
import sys

# The engine, and the modules of the standard library that Windows lacks.
MODULES = ("unisono._engine", "fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
ATTRIBUTES = {
    "os": (
        "EFD_CLOEXEC", "MFD_CLOEXEC", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "WNOHANG", "eventfd",
        "fork", "geteuid", "getpgid", "getpgrp", "getuid", "killpg", "memfd_create", "pidfd_open", "pipe2", "posix_fallocate",
        "pread", "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sched_yield", "setsid",
        "statvfs", "sysconf", "tcgetpgrp", "uname",
    ),
    "select": ("epoll", "poll"),
    "selectors": ("EpollSelector", "PollSelector"),
    "signal": (
        "ITIMER_REAL", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGTSTP", "SIGUSR1", "SIGUSR2", "alarm",
        "pthread_sigmask", "setitimer",
    ),
    "socket": ("AF_UNIX", "SOCK_CLOEXEC", "SOCK_NONBLOCK"),
}  # fmt: skip
PREAMBLE = f"""
import os, sys
# Imported while it can still see what it is going to use itself.
import concurrent.futures.process, multiprocessing.popen_spawn_posix, platform, subprocess, tempfile, webbrowser

platform.uname()
for name in {MODULES!r}:
    sys.modules[name] = None  # importing it raises ModuleNotFoundError
for module, names in {ATTRIBUTES!r}.items():
    for name in names:
        if hasattr(sys.modules.get(module) or __import__(module), name):
            delattr(sys.modules[module], name)
os.supports_dir_fd = set()  # as on Windows
sys.platform = PLATFORM
"""


def run_elsewhere(code: str, *words: str, platform: str = "win32") -> subprocess.CompletedProcess[str]:
    """Run the code in a process that looks like ``platform``; a default encoding of text is an error."""
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-c"]
    program = PREAMBLE.replace("PLATFORM", repr(platform)) + code
    return subprocess.run([*command, program, *words], capture_output=True, text=True, timeout=120)


def command_elsewhere(*words: str, platform: str = "win32") -> subprocess.CompletedProcess[str]:
    """Run the command ``unisono``."""
    return run_elsewhere("from unisono.cli.main import main\nsys.exit(main())", *words, platform=platform)
