from __future__ import annotations

import sys

import pytest

from bench.fakes import Fake
from unisono.bench import plot
from unisono.bench.cases import make_cases
from unisono.bench.contender import ContenderFailed
from unisono.bench.measure import Effort, measure
from unisono.cli.main import main
from unisono.collectives import all_reduce
from unisono.errors import UsageError


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_plot_is_written_to_a_file(tmp_path, name, begins):
    contenders = [
        Fake("unisono", 1e-6), Fake("memcpy", 1e-7, communicates=False), Fake("gloo", 1e-4),
        Fake("broken", 1e-4, trouble={"ready": ContenderFailed("no")}),
    ]  # fmt: skip
    measurement = measure(contenders, make_cases(all_reduce, [8, 64, 4096], "float32", "sum", 2), 2, Effort(1, 0.001))
    plot.check_plot(tmp_path / name)
    plot.draw(measurement, "unisono", tmp_path / name)
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(begins)
    if name.endswith(".svg"):
        for text in (b"unisono", b"memcpy", b"gloo", b"busbw, GB/s", b"2 KiB"):
            assert b"<!-- " + text in drawn
        assert b"<!-- broken" not in drawn


def test_a_plot_needs_the_name_of_an_image(tmp_path):
    with pytest.raises(UsageError, match=r"expected a name that ends in \.png"):
        plot.check_plot(tmp_path / "a.gif")
    with pytest.raises(UsageError, match="there is no folder"):
        plot.check_plot(tmp_path / "nowhere" / "a.png")


def test_without_matplotlib_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install unisono\[plot\]"):
        plot.check_plot(tmp_path / "a.png")


def test_without_matplotlib_the_command_line_names_the_extra_that_installs_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ["bench", "-n", "2", "--bytes", "1KiB", "--peers-only", "--against", "memcpy"]
    assert main([*words, "--plot", str(tmp_path / "a.svg")]) == 2
    assert "pip install unisono[plot]" in capsys.readouterr().err
