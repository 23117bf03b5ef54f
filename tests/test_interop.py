"""The page of `make interop` never claims that a program works when it does not."""

from __future__ import annotations

import interop
from interop import Training


def test_a_training_works_if_its_losses_equal_those_on_gloo():
    assert interop.verdict(Training([1.0, 0.5]), Training([1.0, 0.5])) == "works; 2 losses, bit-identical to Gloo's"
    assert interop.verdict(Training([1.0, 0.5000001]), Training([1.0, 0.5])).startswith("works; losses within ")


def test_a_training_with_other_losses_does_not_work():
    assert interop.verdict(Training([1.0, 0.6]), Training([1.0, 0.5])) == "no: losses differ from Gloo's by 2e-01"


def test_a_training_that_fails_is_reported_with_its_error():
    fine, failed = Training([1.0]), Training(error="ValueError: no such thing")
    assert interop.verdict(failed, fine) == "no: `ValueError: no such thing`"
    assert interop.verdict(fine, failed) == "works; Gloo does not: `ValueError: no such thing`"
    assert interop.verdict(failed, failed) == "works on neither; on Gloo: `ValueError: no such thing`"


def test_the_error_of_a_rank_takes_precedence_over_that_of_torchrun():
    torchrun = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    assert interop.reason(f"...\n[rank1]: ValueError: no such thing\n{torchrun}") == "ValueError: no such thing"
    assert interop.reason(f"{torchrun}  traceback : Signal 6 (SIGABRT) received by PID 3\n") == "Signal 6 (SIGABRT)"


def test_the_page_has_a_row_for_every_training():
    text = interop.page([(case, "works") for case in interop.CASES], {"deepspeed": "1.2"})
    assert text.count("| works |") == len(interop.CASES)
    assert "| deepspeed 1.2 | ZeRO-3 |" in text


def test_the_page_equals_the_output_of_the_generator():
    """The stored results, put through the generator again, give the same page."""
    text = interop.PAGE.read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "---" not in line
    ]
    results = [row[-1] for row in rows[1:]]
    versions = dict(pair.split(" ") for pair in text.split("Versions: ")[1].split(".\n")[0].split(", "))
    assert interop.page(list(zip(interop.CASES, results, strict=True)), versions) == text
