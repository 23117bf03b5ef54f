"""Error feedback: dropped parts are sent later."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from arrays import bits
from unisono import codecs
from unisono.codecs.formats import FORMATS
from unisono.errors import UsageError

CODECS = [*FORMATS, "topk:0.05"]


def gradients(steps: int, n: int = 1_000) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    constant = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 0, n)  # some elements are always small
    return [(constant + 0.01 * rng.standard_normal(n)).astype(np.float32) for _ in range(steps)]


@pytest.mark.parametrize("name", CODECS)
def test_the_sum_sent_is_the_sum_of_the_inputs_minus_one_residual(name):
    feedback = codecs.ErrorFeedback(name)
    given, sent = gradients(50), []
    for gradient in given:
        array = gradient.copy()
        feedback.correct("w", array)
        sent.append(array.astype(np.float64))
    lost = sum(gradient.astype(np.float64) for gradient in given) - sum(sent)
    assert np.allclose(lost, feedback.residuals["w"], atol=1e-4)


@pytest.mark.parametrize("name", CODECS)
def test_encoding_a_corrected_array_changes_nothing(name):
    feedback = codecs.ErrorFeedback(name)
    for gradient in gradients(3):
        feedback.correct("w", gradient)
        assert bits(codecs.decode(codecs.encode(gradient, name), name, gradient.size)) == bits(gradient)


@pytest.mark.parametrize("name", ["topk:0.05", "int8", "fp8_e5m2"])
def test_the_average_over_many_steps_is_right_with_feedback_and_wrong_without(name):
    steps = gradients(200)
    with_it, without = np.zeros(1_000), np.zeros(1_000)
    feedback = codecs.ErrorFeedback(name)
    for gradient in steps:
        rounded, corrected = gradient.copy(), gradient.copy()
        codecs.round_in_place(rounded, name)
        feedback.correct("w", corrected)
        without += rounded
        with_it += corrected
    exact = sum(gradient.astype(np.float64) for gradient in steps)
    assert np.linalg.norm(with_it - exact) < 0.2 * np.linalg.norm(without - exact)


def test_the_residual_of_top_k_is_the_dropped_elements_and_the_rounding_of_the_others():
    feedback = codecs.ErrorFeedback("topk:0.5")
    array = np.array([1.0 + 2.0**-10, 0.25, -8.0, 0.5], np.float32)
    feedback.correct("w", array)
    assert list(array) == [1.0, 0, -8.0, 0]
    assert list(feedback.residuals["w"]) == [2.0**-10, 0.25, 0, 0.5]


def test_each_key_has_a_separate_residual_which_can_be_forgotten():
    feedback = codecs.ErrorFeedback("topk:0.5")
    for key in ("a", ("b", 1)):
        feedback.correct(key, np.array([2, 1], np.float32))
    assert set(feedback.residuals) == {"a", ("b", 1)}
    feedback.forget("a")
    feedback.forget("never there")
    assert set(feedback.residuals) == {("b", 1)}
    feedback.forget()
    assert not feedback.residuals


@pytest.mark.parametrize("name", CODECS)
def test_infinity_and_nan_are_sent_once_and_leave_no_residual(name):
    feedback = codecs.ErrorFeedback(name)
    array = np.ones(40, np.float32)
    array[3:6] = np.inf, -np.inf, np.nan
    sent = np.zeros(40, int)
    for _ in range(3):
        feedback.correct("w", array)
        sent += ~np.isfinite(array)
        array = np.ones(40, np.float32)
    assert list(sent[:8]) == [0, 0, 0, 1, 1, 1, 0, 0]
    assert np.isfinite(feedback.residuals["w"]).all()


def test_torch_tensors_of_any_shape_are_corrected_in_place():
    feedback, other = codecs.ErrorFeedback("int8"), codecs.ErrorFeedback("int8")
    for gradient in gradients(2, 60):
        tensor = torch.from_numpy(gradient.copy()).reshape(3, 20)
        feedback.correct("w", tensor)
        other.correct("w", gradient)
        assert bits(tensor.numpy()) == bits(gradient)


def test_an_array_of_another_length_under_the_same_key_is_rejected():
    feedback = codecs.ErrorFeedback("int8")
    feedback.correct("w", np.ones(4, np.float32))
    with pytest.raises(UsageError, match="the array of 'w' has 5 elements; expected 4, as before"):
        feedback.correct("w", np.ones(5, np.float32))


def test_stochastic_codecs_support_error_feedback():
    feedback = codecs.ErrorFeedback(codecs.Codec("int8", stochastic=True, seed=4))
    array = gradients(1)[0]
    wanted = array.copy()
    codecs.round_in_place(wanted, feedback.codec)
    feedback.correct("w", array)
    assert bits(array) == bits(wanted)
