"""Zero output at the start: what the check refutes, and the gradients by JAX."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacit.papers.lyu2023 import wide_starts
from tacit.papers.lyu2023.runs import points


@pytest.fixture
def data(data_of):
    return data_of("L-A3")


def test_width_alone_does_not_give_a_start_of_zero_output(verdict_of):
    verdict = verdict_of("L-A3")
    assert verdict.status == "holds as corrected"
    assert verdict.evidence.counterexample["at the largest"] > 1


def test_an_output_that_vanishes_would_hold_as_printed(data, judged):
    """The check of the printed sentence can pass: with 1/width in place of 1/sqrt(width)."""
    starts, after = data
    mean_field = starts.assign(output=starts.output / np.sqrt(starts.width))
    printed = judged("L-A3", (mean_field, after)).evidence.checks[0]
    assert printed.passes


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s, a: (s.assign(relative=s.by_gradient), a), "f / (|grad f| |theta|)"),
        (lambda s, a: (s, a.assign(off=a.off + 60)), "with the difference trick"),
        (lambda s, a: (s, a.assign(size=a["size"] / 10)), "outputs of the wide net"),
    ],
    ids=["not relative to the norm", "no kernel SVM", "outputs that vanish"],
)
def test_a_wrong_correction_fails(data, judged, wrong, words):
    verdict = judged("L-A3", wrong(*data))
    assert verdict.status in ("fails", "inconclusive")
    assert any(words in check.name for check in verdict.evidence.corrected if check.misses)


def test_output_and_gradient_by_automatic_differentiation():
    width, X = 5, points(0)[0].X
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    rng = np.random.default_rng(3)
    W, v = rng.standard_normal((width, 6)), rng.standard_normal(width)
    found = wide_starts.cell(width, 3, starts=1)

    def output(W, v, x):
        return jnp.sum(v * (W @ x) ** 2) / math.sqrt(width)

    outputs = np.array([output(W, v, x) for x in X])
    slopes = [jax.grad(output, argnums=(0, 1))(W, v, x) for x in X]
    sizes = np.array([math.sqrt(float(jnp.sum(a**2) + jnp.sum(b**2))) for a, b in slopes])
    norm = math.sqrt(np.sum(W**2) + np.sum(v**2))
    assert found["output"] == pytest.approx(np.sqrt(np.mean(outputs**2)), rel=1e-5)
    relative = np.sqrt(np.mean((outputs / sizes / norm) ** 2))
    assert found["relative"] == pytest.approx(relative, rel=1e-5)
    assert found["by_gradient"] == pytest.approx(relative * norm, rel=1e-5)
