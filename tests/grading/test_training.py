"""The planner's predictions for a few measured runs, and the arithmetic of its grade.

The runs are quoted from the plot data of the Ultra-Scale Playbook (Hugging Face): two Llama-style models on H100.
"""

from __future__ import annotations

import statistics

import pytest

from grading import training

HEADER = "model_B,nodes,mbs,gradacc,gbs_seq,dp,pp,tp,zero,mfu_pct,tok_s_gpu,mem_gb,gflop_per_tok"
QUOTED = """\
1.34,1,1,32,256,8,1,1,0,38.3,39273,36.7,9.65
1.34,1,2,16,256,8,1,1,0,39.2,40150,50.2,9.66
1.34,1,1,256,256,1,8,1,0,31.3,27437,18.4,11.29
1.34,2,1,128,256,2,1,8,0,6.8,6956,5.7,9.67
1.34,2,4,16,256,4,1,4,1,31.7,32459,18,9.66
1.34,2,8,4,256,8,1,2,1,36.3,37159,58.7,9.67
8.86,1,1,128,256,2,4,1,1,45.2,7503,63.1,59.61
8.86,1,1,64,256,4,1,2,1,43,7141,65.2,59.58
8.86,2,1,128,256,2,1,8,0,21.7,3595,26.4,59.73
8.86,2,4,16,256,4,1,4,1,43.9,7290,58.3,59.59
1.34,1,1,128,256,1,8,1,1,0.6,485,18.4,12.24
"""
CONSTANTS = (0.645, 0.0041, 0.0024, 0.28, 0.45)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / training.FILE
    path.write_text(f"{HEADER}\n{QUOTED}")
    return training.read_runs(path)


def test_a_run_whose_columns_contradict_each_other_is_left_out(runs):
    assert len(runs) == 10
    assert all(run.configuration.sequences == 256 for run in runs)


def test_the_models_have_the_parameters_and_operations_of_the_file():
    for name, gflop in (("1.34", 9.66), ("8.86", 59.6)):
        model = training.MODELS[name]
        assert model.parameters / 1e9 == pytest.approx(float(name), rel=0.002)
        # the file counts all parameters, and attention without the causal mask
        counted = 6 * model.parameters + 2 * model.layers * model.score_flops(4096)
        assert counted / 1e9 == pytest.approx(gflop, rel=0.002)


def test_predictions_are_close_to_quoted_measurements(runs):
    found = [training.predict(run, training.program(CONSTANTS)) for run in runs]
    rates = [abs(each.tokens_s_gpu / run.tokens_s_gpu - 1) for each, run in zip(found, runs, strict=True)]
    sizes = [abs(each.memory.total / 1e9 / run.memory_gb - 1) for each, run in zip(found, runs, strict=True)]
    assert statistics.median(rates) < 0.08
    assert max(rates) < 0.25
    assert statistics.median(sizes) < 0.08
    assert max(sizes) < 0.15


def test_the_pick_of_a_group_is_among_its_best(runs):
    for pick in training.picks(runs, training.program(CONSTANTS)):
        assert pick.regret <= 1.06, pick


def test_a_fit_recovers_the_constants_of_predictions(runs):
    truth = training.program((0.6, 0.005, 0.0025, 0.3, 0.5))
    made = [training.replace(run, tokens_s_gpu=training.predict(run, truth).tokens_s_gpu) for run in runs]
    assert training.fit(made)[:2] == pytest.approx((0.6, 0.005), rel=0.02)
