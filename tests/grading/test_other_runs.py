"""Rows from a repository that is laid out as that of the measurements."""

import io
import subprocess
import tarfile

import pytest

from grading import other_runs

RUN = "leonardo/2025_01_01___00_00_00"
METADATA = (
    "timestamp,test_id,nnodes,tasks_per_node,collective_type\n"
    "2025_01_01___00_00_00,0,4,1,ALLGATHER\n2025_01_01___00_00_00,1,4,{tasks},ALLREDUCE\n"
)


def repository(folder, tasks):
    results = folder / "results"
    (results / "leonardo").mkdir(parents=True)
    (results / "leonardo_metadata.csv").write_text(METADATA.format(tasks=tasks))
    with tarfile.open(results / f"{RUN}.tar.gz", "w:gz") as archive:
        # Ten iterations in nanoseconds, of which the first two are warm-up; a remark of the library at the end.
        text = "highest\n" + "\n".join(map(str, [9000, 9000, *range(1000, 9000, 1000)])) + "\nAverage 5\n"
        for name in ("0/64_ring_ompi_int32.csv", "1/64_ring_ompi_int32.csv", "0/notes.txt"):
            info = tarfile.TarInfo(f"2025_01_01___00_00_00/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "runs"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def test_a_row_is_the_median_after_the_warm_up(tmp_path):
    found = list(other_runs.rows(repository(tmp_path, tasks=1), RUN, (0,)))
    assert found == [("leonardo", "4", "ALLGATHER", "ring_ompi", 256, 4.5)]


def test_runs_with_several_ranks_per_node_are_refused(tmp_path):
    with pytest.raises(AssertionError, match="1/64_ring"):
        list(other_runs.rows(repository(tmp_path, tasks=4), RUN, None))


def test_no_run_is_in_both_sets():
    assert not set(other_runs.FIRST) & set(other_runs.SECOND)
