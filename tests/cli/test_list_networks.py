"""``unisono list --networks``."""

import json

import pytest

from unisono.cli.main import main
from unisono.networks import PRESETS


@pytest.fixture(autouse=True)
def _no_measurement(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_every_preset_has_a_row(capsys):
    assert main(["list", "--networks"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in PRESETS)


def test_the_table_exists_in_chinese(capsys):
    main(["list", "--networks", "--lang", "zh"])
    assert "网络" in capsys.readouterr().out


def test_every_network_has_a_title_in_both_languages():
    for name, network in PRESETS.items():
        assert network.title, name
        assert any("\u4e00" <= letter <= "\u9fff" for letter in network.title_zh), name


def test_json_has_the_numbers_and_their_sources(capsys):
    main(["list", "--networks", "--json"])
    listed = {network["name"]: network for network in json.loads(capsys.readouterr().out)}
    assert list(listed) == list(PRESETS)
    assert listed["dgx-h100"]["nic"]["count"] == 8
    assert all(network["source"] for network in listed.values())
