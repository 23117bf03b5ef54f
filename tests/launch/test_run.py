from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from signal import SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, SIGTSTP

import pytest

from launching import LIMIT_S, is_alive, job, lines_of, run_ranks, state_of, wait_until, words
from unisono.launch.run import SAME_PRESS_S, Outcome

# Prints its process number, and then waits.
WAITING = 'echo "pid $$"; while true; do sleep 0.05; done'
# Rank 1 ends; the others continue afterwards. (Its exit code is known before its directory in /proc is empty.)
RANK_1_FAILS = """cd "$UNISONO_JOB"
if [ $UNISONO_RANK = 1 ]; then echo $$ > new; mv new rank_1; exit 7; fi
while [ ! -e rank_1 ]; do sleep 0.01; done; while [ -r /proc/$(cat rank_1)/exe ]; do sleep 0.01; done; sleep 0.1"""
STUBBORN = f'trap "" INT TERM HUP; {WAITING}'


@pytest.fixture(autouse=True)
def _signals_as_usual():
    """Restore the default signal handlers, also if the tests run in the background or under nohup."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (SIGTERM, SIGHUP)}
    before[SIGINT] = signal.signal(SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_every_line_names_its_rank():
    done = run_ranks('echo "hello from $UNISONO_RANK of $UNISONO_SIZE"; echo "again"; echo oops >&2', 3)
    assert done.returncode == 0
    for rank in range(3):
        assert lines_of(done.stdout, rank) == [b"hello from %d of 3" % rank, b"again"]
        assert lines_of(done.stderr, rank) == [b"oops"]
    assert len(done.stdout.splitlines()) == 6


def test_a_line_written_in_pieces_stays_whole():
    pieces = 'for i in 1 2 3 4 5 6 7 8 9; do printf "a"; printf "b$UNISONO_RANK"; printf "c\\n"; done'
    done = run_ranks(pieces, 16)
    assert Counter(done.stdout.splitlines()) == {b"[%d] ab%dc" % (rank, rank): 9 for rank in range(16)}


def test_a_very_long_line_stays_whole():
    done = run_ranks('head -c 3000000 /dev/zero | tr "\\0" "$UNISONO_RANK"; echo; echo end', 3)
    for rank in range(3):
        assert lines_of(done.stdout, rank) == [b"%d" % rank * 3_000_000, b"end"]


def test_bytes_that_are_not_text_and_non_ascii_letters_pass_unchanged():
    done = run_ranks(r'printf "\377\376\000\200\n齐奏\r\n\n"', 2)
    for rank in range(2):
        assert b"[%d] \xff\xfe\x00\x80\n" % rank in done.stdout
        assert b"[%d] %s\r\n" % (rank, "齐奏".encode()) in done.stdout
        assert b"[%d] \n" % rank in done.stdout


def test_a_last_line_without_an_end_is_not_lost():
    done = run_ranks('printf "first\\nlast"', 3)
    assert sorted(done.stdout.splitlines()) == sorted(
        b"[%d] %s" % (r, w) for r in range(3) for w in (b"first", b"last")
    )


def test_output_just_before_the_end_is_not_lost():
    done = run_ranks("seq 1 20000", 5)
    for rank in range(5):
        assert lines_of(done.stdout, rank) == [b"%d" % number for number in range(1, 20001)]


def test_rank_0_reads_the_standard_input_and_the_others_have_none():
    done = run_ranks("cat; echo done", 3, stdin=b"one\ntwo\n")
    assert lines_of(done.stdout, 0) == [b"one", b"two", b"done"]
    assert lines_of(done.stdout, 1) == lines_of(done.stdout, 2) == [b"done"]


def test_terminal_input_is_forwarded_to_rank_0():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, words("echo ready; read line; echo got $line; cat", 2, (0.3, 0.3, 0.3)))
    seen = b""
    answers = {b"[0] ready": b"some words\n", b"[0] got some words": b"\x04"}  # Ctrl-D: the end
    try:
        while select.select([terminal], [], [], LIMIT_S)[0] and (part := os.read(terminal, 4096)):
            seen += part
            for heard in [heard for heard in answers if heard in seen]:
                os.write(terminal, answers.pop(heard))
    except OSError:  # a terminal raises it when its last process has ended
        pass
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"[0] got some words" in seen
    assert b"[1] got\r\n" in seen


def test_a_job_has_a_private_directory_that_is_removed_afterwards(tmp_path):
    program = 'echo "$UNISONO_JOB"; stat -c "%a %s" "$UNISONO_JOB" "$UNISONO_JOB"/secret; cat "$UNISONO_JOB"/secret'
    with job(tmp_path, f"{program}; touch $UNISONO_JOB/$UNISONO_RANK") as running:
        assert running.code() == 0
        rank_0, rank_1 = (lines_of(running.output.read_bytes(), rank) for rank in range(2))
        assert rank_0 == rank_1
        directory, its_mode, secret_mode, secret = rank_0
        assert os.fsdecode(directory).startswith(f"{tmp_path}/unisono-")
        assert its_mode.startswith(b"700 ")
        assert secret_mode == b"600 64"
        assert len(bytes.fromhex(secret.decode())) == 32
        assert not os.path.exists(directory)


@pytest.mark.parametrize(
    ("program", "code", "outcome"),
    [
        ("exit 0", 0, Outcome()),
        ("exit $((UNISONO_RANK * 3))", 3, Outcome(1, 3)),
        ("[ $UNISONO_RANK = 0 ] || kill -USR1 $$; sleep 60", 128 + 10, Outcome(1, -10)),
        ("[ $UNISONO_RANK = 0 ] || kill -KILL $$; sleep 60", 128 + 9, Outcome(1, -9)),
        # the others notice, and fail with another exit code
        (f"{RANK_1_FAILS}; exit 1", 7, Outcome(1, 7)),
    ],
)
def test_the_exit_code_is_that_of_the_rank_that_failed_first(program, code, outcome):
    done = run_ranks(program)
    assert done.returncode == code
    assert done.stderr.decode().splitlines()[-1] == str(outcome)


def test_the_first_failure_is_known_even_if_the_launcher_is_late(tmp_path):
    one_after_the_other = f"""echo "pid $$"; while [ ! -e {tmp_path}/$UNISONO_RANK ]; do sleep 0.01; done
exit 4$UNISONO_RANK"""
    with job(tmp_path, one_after_the_other, 5) as running:
        running.wait_for("pid", 5)
        pids = {int(line[1]): int(line.split()[2]) for line in running.printed().splitlines()}
        running.send(SIGSTOP)
        for rank in (3, 0, 4, 1, 2):
            (tmp_path / str(rank)).touch()
            wait_until(lambda pid=pids[rank]: not is_alive(pid))
        running.send(SIGCONT)
        assert running.code() == 43


def test_when_a_rank_fails_the_others_have_time_to_report_it():
    done = run_ranks(f"{RANK_1_FAILS}; echo noticed; exit 1", 3, grace_s=(LIMIT_S, 0.3, 0.3))
    assert done.returncode == 7
    assert lines_of(done.stdout, 0) == lines_of(done.stdout, 2) == [b"noticed"]


@pytest.mark.parametrize("program", [WAITING, STUBBORN])
def test_when_a_rank_fails_the_others_are_ended_after_the_grace_period(tmp_path, program):
    rank_1 = f"while [ $(ls {tmp_path} | grep -c there) -lt 2 ]; do sleep 0.01; done; exit 7"
    others = f"touch {tmp_path}/there$UNISONO_RANK; {program}"
    with job(tmp_path, f"[ $UNISONO_RANK = 1 ] && {{ {rank_1}; }}; {others}", 3, grace_s=(0.3, 0.2, 0.3)) as running:
        assert running.code() == 7
        assert len(running.pids()) == 2
        assert not any(map(is_alive, running.pids()))


@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGHUP])
def test_a_signal_to_the_launcher_reaches_every_rank(tmp_path, number):
    name = number.name.removeprefix("SIG")
    with job(tmp_path, f'trap "echo heard $UNISONO_RANK; exit 0" {name}; {WAITING}', 3) as running:
        running.wait_for("pid", 3)
        running.send(number)
        assert running.code() == 128 + number
        for rank in range(3):
            assert f"[{rank}] heard {rank}\n" in running.printed()
        assert not any(map(is_alive, running.pids()))


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_ranks_that_ignore_a_signal_are_killed(tmp_path, number):
    with job(tmp_path, STUBBORN, 3, grace_s=(0.3, 0.2, 0.3)) as running:
        running.wait_for("pid", 3)
        running.send(number)
        assert running.code() == 128 + number
        assert not any(map(is_alive, running.pids()))


@pytest.mark.parametrize("program", [WAITING, STUBBORN])
def test_a_rank_that_has_started_a_new_session_is_ended_too(tmp_path, program):
    with job(tmp_path, f"exec setsid sh -c '{program}'", grace_s=(0.3, 0.2, 0.3)) as running:
        running.wait_for("pid", 2)
        running.send(SIGTERM)
        assert running.code() == 128 + SIGTERM
        assert not any(map(is_alive, running.pids()))


def test_a_second_interrupt_kills_at_once(tmp_path):
    heard = f'trap "echo heard; trap true INT" INT; {WAITING}'  # it ignores the next one
    with job(tmp_path, heard, grace_s=(0.3, 10 * LIMIT_S, 0.3)) as running:
        running.wait_for("pid", 2)
        running.send(SIGINT)
        running.wait_for("heard", 2)
        time.sleep(2 * SAME_PRESS_S)
        running.send(SIGINT)
        assert running.code() == 130
        assert not any(map(is_alive, running.pids()))


def test_a_launcher_that_is_killed_leaves_nothing_behind(tmp_path):
    """The ranks, the processes that they have started and the directory are removed."""
    child = f"sh -c '{WAITING}' &"
    with job(tmp_path, f'trap "" HUP INT TERM; echo "directory $UNISONO_JOB"; {child} {WAITING}', 3) as running:
        running.wait_for("pid", 6)
        [directory] = {line.split()[2] for line in running.printed().splitlines() if "directory" in line}
        assert os.path.exists(directory)
        running.send(SIGKILL)
        wait_until(lambda: not any(map(is_alive, running.pids())))
        wait_until(lambda: not os.path.exists(directory))


def test_processes_that_a_rank_has_started_end_with_the_job(tmp_path):
    with job(tmp_path, f"sh -c '{STUBBORN}' & sh -c '{WAITING}' >/dev/null & echo pid $!") as running:
        assert running.code() == 0
        assert len(running.pids()) == 4
        wait_until(lambda: not any(map(is_alive, running.pids())))


def test_processes_that_a_rank_has_started_may_still_write():
    """The resource tracker of Python's multiprocessing is such a process."""
    done = run_ranks("(sleep 0.1; echo tidied) &", grace_s=(0.3, 0.3, LIMIT_S))
    assert lines_of(done.stdout, 0) == lines_of(done.stdout, 1) == [b"tidied"]


def test_a_process_that_has_left_the_job_does_not_delay_its_end(tmp_path):
    leave = f"setsid sh -c '{WAITING}' & while [ ! -s {tmp_path}/output ]; do sleep 0.01; done; printf last"
    with job(tmp_path, leave, 1) as running:
        assert running.code() == 0
        assert "[0] last\n" in running.printed()
        assert any(map(is_alive, running.pids()))


def test_a_job_can_be_stopped_and_continued(tmp_path):
    """As with Ctrl-Z and fg. (`exec`: a shell that waits for a child may not show that it is stopped.)"""
    with job(tmp_path, 'echo "pid $$"; exec sleep 600') as running:
        running.wait_for("pid", 2)
        running.send(SIGTSTP)
        everyone = [running.process.pid, *running.pids()]
        wait_until(lambda: all(state_of(pid) == "T" for pid in everyone))
        running.send(SIGCONT)
        wait_until(lambda: all(state_of(pid) != "T" for pid in everyone))
        running.send(SIGTERM)
        assert running.code() == 128 + SIGTERM


def test_a_launcher_started_with_nohup_ignores_hangups(tmp_path):
    signal.signal(SIGHUP, signal.SIG_IGN)  # as nohup does; child processes inherit it
    with job(tmp_path, WAITING) as running:
        running.wait_for("pid", 2)
        running.send(SIGHUP)
        running.send(SIGTERM)
        assert running.code() == 128 + SIGTERM


def test_a_launcher_that_inherits_an_ignored_sigchld_knows_the_exit_codes(tmp_path):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # child processes inherit it
    try:
        with job(tmp_path, "exit 7") as running:
            signal.signal(signal.SIGCHLD, before)
            assert running.code() == 7
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_ranks_can_be_pinned_to_cores():
    code = (
        "import os, sys\n"
        "from unisono.launch.run import launch\n"
        "before = os.sched_getaffinity(0)\n"
        "show = 'import os; print(sorted(os.sched_getaffinity(0)))'\n"
        "launch([sys.executable, '-c', show], 3, bind=True)\n"
        "assert os.sched_getaffinity(0) == before\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LIMIT_S)
    cores = sorted(os.sched_getaffinity(0))
    for rank in range(3):
        assert lines_of(done.stdout, rank) == [b"[%d]" % cores[rank % len(cores)]]


def test_a_job_can_be_started_outside_of_the_main_thread():
    code = (
        "import threading\n"
        "from unisono.launch.run import launch\n"
        "threading.Thread(target=lambda: print(launch(['true'], 2))).start()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout == f"{Outcome()}\n", done.stderr
