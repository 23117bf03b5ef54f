"""``unisono info``: what it prints about this installation."""

from __future__ import annotations

import json

from unisono.bootstrap import ucx_search
from unisono.cli.main import main


def test_the_command_that_installs_ucx_is_printed_with_its_extra_in_brackets(capsys, monkeypatch):
    def no_ucx() -> str:
        raise RuntimeError("found no libucp.so.0 in [/a, /b]")

    monkeypatch.setattr(ucx_search, "probe", no_ucx)
    assert main(["info"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "not available (pip install unisono[net]): found no libucp.so.0 in [/a, /b]" in shown
    assert main(["info", "--json"]) == 0
    assert "unisono[net]" in json.loads(capsys.readouterr().out)["ucx"]
