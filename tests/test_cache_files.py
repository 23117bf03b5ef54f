"""Records in the user's cache: complete or absent, and trusted only if no other user could have written them."""

from __future__ import annotations

import json
import os
import re
import time
import warnings

import pytest

from unisono import cache_files, find
from unisono.cache_files import Unbelievable, Untrusted, read_record, user_cache, write_record
from unisono.comm import tables
from unisono.verifier import cache_directory, proof_of, proved

TABLE = {"all_reduce": {"2": [[0, "tree"]]}}


@pytest.fixture
def give_away(monkeypatch):
    """Return a function that gives a file or folder to another user."""

    def change(path):
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        else:
            monkeypatch.setattr(cache_files.os, "geteuid", lambda: os.getuid() + 1)

    return change


def test_a_stored_record_is_found_and_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "a" / "b" / "x.json"
    assert read_record(path) is None
    write_record(path, {"one": [1, None]})
    write_record(path, {"two": 2})
    assert read_record(path) == {"two": 2}
    assert [entry.name for entry in path.parent.iterdir()] == ["x.json"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)} == {0o700}


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_other_users_can_write_is_not_trusted(tmp_path, mode):
    path = tmp_path / "x.json"
    write_record(path, 1)
    path.chmod(mode)
    with pytest.raises(Untrusted, match=f"found user {os.geteuid()} and mode {mode:04o}"):
        read_record(path)


def test_a_file_of_another_user_is_not_trusted(tmp_path, give_away):
    path = tmp_path / "x.json"
    write_record(path, 1)
    give_away(path)
    with pytest.raises(Untrusted, match="expected it to belong to user"):
        read_record(path)


@pytest.mark.parametrize("which", ["unisono", "proofs"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_a_folder_that_other_users_can_write_is_neither_read_nor_written(give_away, which, how):
    """The schedule is proved again, with one warning."""
    schedule = find("ring").schedule(3)
    assert not proved(schedule).cached
    assert proved(schedule).cached
    folder = cache_directory() if which == "proofs" else user_cache()
    if how == "owner":
        give_away(folder)
    else:
        folder.chmod(0o770)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not proved(schedule).cached
        assert not proved(schedule).cached
        proof_of(find("ring").schedule(4))
    (warning,) = said
    assert re.search(r"ignored .*proofs: .*to belong to user.*chmod go-w", str(warning.message))
    assert len(list(cache_directory().iterdir())) == 1


def test_a_table_of_another_user_is_not_used(give_away):
    tables.store_table(TABLE)
    assert tables.load_table() == TABLE
    give_away(tables.table_path())
    with pytest.warns(UserWarning, match="ignored .*algorithms.json: .*to belong to user"):
        assert tables.load_table() == {}


def test_a_symbolic_link_instead_of_a_record_is_not_followed(tmp_path):
    write_record(tmp_path / "true.json", 1)
    (tmp_path / "x.json").symlink_to(tmp_path / "true.json")
    with pytest.raises(Unbelievable):
        read_record(tmp_path / "x.json")


def test_a_cache_folder_may_be_a_symbolic_link_of_the_user(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    user_cache().parent.mkdir(parents=True)
    user_cache().symlink_to(tmp_path / "elsewhere")
    schedule = find("ring").schedule(3)
    proved(schedule)
    assert proved(schedule).cached


def test_a_pipe_or_folder_instead_of_a_record_neither_blocks_nor_leaks_a_descriptor(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for name in ("pipe", "folder"):
        with pytest.raises(Unbelievable, match="expected a file"):
            read_record(tmp_path / name)
        if name == "folder":
            with pytest.raises(OSError, match="directory"):
                write_record(tmp_path / name, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def parts(folder):
    return [entry for entry in folder.iterdir() if entry.name.endswith(".part")]


def test_no_partial_file_is_left_if_a_folder_has_the_name():
    schedule = find("ring").schedule(3)
    entry = cache_directory() / f"{proved(schedule).digest}.json"
    entry.unlink()
    entry.mkdir()
    for _ in range(2):
        assert not proved(schedule).cached
    assert parts(cache_directory()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_no_partial_file_is_left_if_writing_fails(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(cache_files.os, "replace", fail)
    with pytest.raises(type(error)):
        write_record(tmp_path / "x.json", 1)
    assert list(tmp_path.iterdir()) == []


def test_no_partial_file_is_left_on_a_full_disk():
    """In a process whose files may not grow."""
    import subprocess
    import sys

    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "from unisono import find; from unisono.verifier import proved\n"
        "assert not proved(find('ring').schedule(5)).cached"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert list(cache_directory().iterdir()) == []


def test_old_partial_files_of_killed_processes_are_removed(tmp_path):
    old, young = tmp_path / "tmpabc.part", tmp_path / "tmpdef.part"
    old.touch()
    young.touch()
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    write_record(tmp_path / "x.json", 1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["tmpdef.part", "x.json"]


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b"1" * 5000])
def test_files_that_are_not_json_are_ignored(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(Unbelievable, match="expected JSON"):
        read_record(path)


def test_files_that_are_too_long_are_not_read(tmp_path):
    path = tmp_path / "x.json"
    write_record(path, "x" * 100)
    with pytest.raises(Unbelievable, match="expected at most 100 bytes"):
        read_record(path, 100)


def test_a_relative_cache_folder_is_ignored_and_a_user_without_a_home_has_none(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache() == tmp_path / ".cache" / "unisono"
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not proved(find("ring").schedule(3)).cached
        assert tables.load_table() == {}
    assert not (tmp_path / "missing").exists()


def test_the_user_is_told_if_a_measured_table_cannot_be_stored(monkeypatch):
    from unisono.errors import UsageError

    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UsageError, match=r"/dev/null/unisono/algorithms.json: Not a directory"):
        tables.store_table(TABLE)


def test_a_stored_table_is_a_json_object_with_the_key_table():
    tables.store_table(TABLE)
    assert json.loads(tables.table_path().read_text()) == {"table": TABLE}
