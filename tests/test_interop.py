"""What make interop says of a training: never that something works which does not."""

from __future__ import annotations

import interop
from interop import Training


def test_a_training_works_if_its_losses_are_those_of_gloo():
    assert (
        interop.verdict(Training([1.0, 0.5]), Training([1.0, 0.5])) == "works; 2 losses as on Gloo, to the last bit"
    )
    assert interop.verdict(Training([1.0, 0.5000001]), Training([1.0, 0.5])).startswith(
        "works; losses as on Gloo to "
    )


def test_a_training_with_other_losses_does_not_work():
    assert interop.verdict(Training([1.0, 0.6]), Training([1.0, 0.5])) == "no: losses differ from Gloo's by 2e-01"


def test_who_does_not_train_is_said_with_the_error():
    fine, failed = Training([1.0]), Training(error="ValueError: what a pity")
    assert interop.verdict(failed, fine) == "no: `ValueError: what a pity`"
    assert interop.verdict(fine, failed) == "works; Gloo does not: `ValueError: what a pity`"
    assert interop.verdict(failed, failed) == "runs on neither; on Gloo: `ValueError: what a pity`"


def test_the_error_of_a_rank_is_found_before_that_of_torchrun():
    torchrun = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    assert interop.reason(f"...\n[rank1]: ValueError: what a pity\n{torchrun}") == "ValueError: what a pity"
    assert interop.reason(f"{torchrun}  traceback : Signal 6 (SIGABRT) received by PID 3\n") == "Signal 6 (SIGABRT)"


def test_the_page_has_a_line_for_every_training():
    text = interop.page([(case, "works") for case in interop.CASES], {"deepspeed": "1.2"})
    assert text.count("| works |") == len(interop.CASES)
    assert "| deepspeed 1.2 | ZeRO-3 |" in text
