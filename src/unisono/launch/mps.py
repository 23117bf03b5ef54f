"""A private MPS daemon for the ranks of a job, which ends with the job and leaves nothing behind.

MPS (Multi-Process Service) is NVIDIA's service through which several processes use one GPU at the same time; without
it, the GPU gives each process a slice of time. Its control daemon finds its clients, and they find it, in the folder
that CUDA_MPS_PIPE_DIRECTORY names. A folder of this job makes the daemon private: other users, and a daemon that the
machine may already run, are not affected.

The daemon leaves the process group of its parent, so killing the group of a job does not reach it. It belongs to a
**keeper**, a shell that only waits for a pipe to be closed: by this process, or by the kernel when this process is
killed. The keeper then quits the daemon and removes its folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from unisono.errors import UsageError
from unisono.launch import messages

CONTROL = "nvidia-cuda-mps-control"
DRIVER = Path("/dev/nvidiactl")  # exists where NVIDIA's driver is loaded
START_S = 20.0
QUIT_S = 2  # the time that clients have to leave; at the end of a job they are dead already
KEEPER_S = 30.0
LOG_LINES = 5  # shown when the daemon does not start

# `quit` also ends the servers of the daemon. If it does not, they are killed, by number, if they still are what they
# were. /proc/PID/exe does not exist for a process that has ended and was not waited for.
KEEPER = f"""read -r _
pid=$(cat "$2/pipe/{CONTROL}.pid" 2>/dev/null) || pid=
family="$pid $(cat /proc/${{pid:-none}}/task/*/children 2>/dev/null)"
echo "quit -t {QUIT_S}" | timeout 10 "$1"
for process in $family; do
  tries=0
  while [ -e "/proc/$process/exe" ] && [ $tries -lt 50 ]; do sleep 0.05; tries=$((tries + 1)); done
  case "$(cat "/proc/$process/comm" 2>/dev/null)" in nvidia-cuda-mps*) kill -KILL "$process" ;; esac
done
rm -rf -- "$2" || rm -rf -- "$2"
"""


@contextlib.contextmanager
def mps_variables(*, wanted: bool) -> Iterator[dict[str, str]]:
    """Yield the variables of a private MPS daemon if one is wanted; otherwise start none, and yield no variables."""
    if wanted:
        with mps_daemon() as variables:
            yield variables
    else:
        yield {}


@contextlib.contextmanager
def mps_daemon() -> Iterator[dict[str, str]]:
    """Start a private MPS daemon; yield the variables by which the ranks find it; quit it afterwards in any event."""
    control = shutil.which(CONTROL)
    if control is None:
        raise UsageError(messages.NO_MPS(program=CONTROL))
    if not DRIVER.exists():
        raise UsageError(messages.MPS_WITHOUT_GPU(driver=DRIVER))
    folder = Path(tempfile.mkdtemp(prefix="unisono-mps-"))
    variables = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for path in variables.values():
        Path(path).mkdir(mode=0o700)
    # All GPUs are visible to the daemon: its clients number those that it sees, and apply their own selection.
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | variables
    with _keeper(control, folder, environment):
        _start(control, folder, environment)
        yield variables


@contextlib.contextmanager
def _keeper(control: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Start the keeper; afterwards, wait until it has quit the daemon and removed its folder."""
    read_end, write_end = os.pipe()
    try:
        keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER, "keeper", control, str(folder)], env=environment, cwd="/",
            stdin=read_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal does not reach it
        )  # fmt: skip
    except BaseException:
        os.close(write_end)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(read_end)
    try:
        yield
    finally:
        os.close(write_end)
        try:
            keeper.wait(KEEPER_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _start(control: str, folder: Path, environment: dict[str, str]) -> None:
    """Start the daemon, and wait until it answers; UsageError, with the last lines of its log, if it does not."""
    ends_s = time.monotonic() + START_S
    code = _run([control, "-d"], environment, folder, ends_s)
    while code == 0:
        if _run([control], environment, folder, ends_s, commands=b"get_server_list\n") == 0:
            return
        if time.monotonic() > ends_s:
            break
        time.sleep(0.05)
    raise UsageError(messages.MPS_NOT_STARTED(command=f"{CONTROL} -d", reason=_reason(code), log=_log(folder)))


def _run(
    command: list[str], environment: dict[str, str], folder: Path, ends_s: float, commands: bytes = b""
) -> int | str:
    """Run a command; return its exit code, or the reason why it has none.

    Its output goes to a file and not to a pipe, which the daemon would keep open.
    """
    with (folder / "log" / "output.log").open("ab") as output:
        try:
            done = subprocess.run(
                command, env=environment, cwd="/", input=commands, stdout=output, stderr=output,
                timeout=max(0.1, ends_s - time.monotonic()),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return messages.MPS_TIMEOUT(seconds=f"{START_S:.0f}")
        except OSError as error:
            return error.strerror or str(error)
    return done.returncode


def _reason(code: int | str) -> str:
    if code == 0:
        return messages.MPS_TIMEOUT(seconds=f"{START_S:.0f}")
    return messages.MPS_EXIT_CODE(code=code) if isinstance(code, int) else code


def _log(folder: Path) -> str:
    """Return the last lines that the daemon has written: to its logs, and to its output."""
    lines: list[str] = []
    for path in sorted((folder / "log").glob("*.log")):
        with contextlib.suppress(OSError):
            lines += path.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "".join(f"\n  {line}" for line in lines if line.strip()) or messages.MPS_NO_LOG()
