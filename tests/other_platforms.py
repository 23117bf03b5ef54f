"""Runs Python code as the pure-Python wheel would: without the engine and, for Windows, without what Windows lacks.

The code runs on Linux, where the modules and the attributes that Windows lacks have been removed before Unisono is
imported; macOS has more of them. What differs in other ways, such as paths, is not tested.
"""

from __future__ import annotations

import os
import subprocess
import sys

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
ATTRIBUTES = {
    "os": (
        "EFD_CLOEXEC", "MFD_CLOEXEC", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "WNOHANG", "eventfd",
        "fork", "geteuid", "getpgid", "getpgrp", "getuid", "killpg", "memfd_create", "pidfd_open", "pipe2",
        "posix_fallocate", "pread", "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity",
        "sched_yield", "setsid", "statvfs", "sysconf", "tcgetpgrp", "uname",
    ),
    "select": ("epoll", "poll"),
    "selectors": ("EpollSelector", "PollSelector"),
    "signal": (
        "ITIMER_REAL", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGTSTP", "SIGUSR1", "SIGUSR2", "alarm",
        "pthread_sigmask", "setitimer",
    ),
    "socket": ("AF_UNIX", "SOCK_CLOEXEC", "SOCK_NONBLOCK"),
}  # fmt: skip
WITHOUT_ENGINE = """
import sys
sys.modules["unisono._engine"] = None  # importing it raises ModuleNotFoundError
"""
ON_WINDOWS = f"""
import os
# Imported while it can still see what it is going to use itself.
import concurrent.futures.process, multiprocessing.popen_spawn_posix, platform, subprocess, tempfile, webbrowser

platform.uname()
for name in {MODULES!r}:
    sys.modules[name] = None
for module, names in {ATTRIBUTES!r}.items():
    for name in names:
        if hasattr(sys.modules.get(module) or __import__(module), name):
            delattr(sys.modules[module], name)
os.supports_dir_fd = set()
sys.platform = "win32"
"""


def run_elsewhere(
    code: str, *words: str, platform: str = "win32", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    """Run the code in a process that looks like ``platform``, "win32" or "linux".

    Opening a text file without stating its encoding is an error, because the default is not UTF-8 on Windows.
    ``encoding`` is that of standard output, which is not UTF-8 on Windows where it is a file or a pipe.
    """
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-c"]
    program = WITHOUT_ENGINE + (ON_WINDOWS if platform == "win32" else "") + code
    variables = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"}
    return subprocess.run(
        [*command, program, *words], capture_output=True, text=True, encoding=encoding, env=variables, timeout=120
    )
