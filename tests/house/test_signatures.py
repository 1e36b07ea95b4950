"""The words of the public signatures: one word for one thing, scales by name, one order of data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import tacit

SCALES = ("alpha", "mu", "log_alpha")
# where a scale is no choice among three: a stop rule has one number
SCALE_IS_ALL = {"Scale"}

OLD_WORDS = {
    "step": "learning_rate",
    "step_size": "learning_rate",
    "lr": "learning_rate",
    "pace": "learning_rate",
    "rate": "weight_decay",
    "decay": "weight_decay",
    "until": "stop",
    "t_max": "stop",
    "n_steps": "steps",
    "points_per_decade": "record",
    "inputs": "dimension",
    "hidden": "width",
}
ALLOWED = {
    ("watch", "step"): "the number of the step at which a user's loop begins",
    ("Watch", "step"): "the same",
    ("Watch.__call__", "step"): "the number of the step in a user's loop",
    ("watch", "points_per_decade"): "there is no record rule: the loop belongs to the user",
    ("Watch", "points_per_decade"): "the same",
    ("TokenTransformer", "hidden"): "its width is that of the stream, hidden that of the MLP",
}

# makers of problems, by what they need first
MAKERS = {
    "commuting_sensing": ["samples", "dimension"],
    "gaussian_sensing": ["samples", "dimension"],
    "low_rank_completion": ["samples", "dimension"],
    "majority": ["samples", "dimension"],
    "separable_points": ["samples", "dimension"],
    "sparse_recovery": ["samples", "dimension"],
    "sparse_regression": ["samples", "dimension"],
    "teacher_student": ["samples", "dimension"],
    "wide_margin": ["samples", "dimension"],
    "circle_teacher": ["samples"],  # the points lie in the plane
    "coherent_completion": ["samples", "truth"],  # the matrix has the dimension
    "modular_addition": ["modulus"],
    "modular_arithmetic": ["modulus"],
    "multiplication_table": ["dimension"],
    "permutation_group": ["degree"],
    "three_points": ["name"],
}
DATA = {"load_images", "import_images"}  # these read files


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Every public callable and every public method of a public class."""
    for name in tacit.__all__:
        thing = getattr(tacit, name)
        yield name, inspect.signature(thing)
        if inspect.isclass(thing):
            for method in vars(thing):
                function = inspect.getattr_static(thing, method)
                if inspect.isfunction(function) and (method == "__call__" or method[0] != "_"):
                    yield f"{name}.{method}", inspect.signature(function)


def positional(signature: inspect.Signature) -> list[str]:
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [name for name, one in signature.parameters.items() if one.kind in kinds]


def test_a_scale_is_given_by_its_name():
    for name, signature in signatures():
        found = [word for word in positional(signature) if word in SCALES]
        assert not found or name in SCALE_IS_ALL, f"{name}: {found} must be keyword-only"


def test_every_scale_that_can_be_given_as_alpha_can_be_given_as_its_logarithm():
    """Scales beyond float64 need it; the nets on tokens and images are float32."""
    single = {"ImageNet", "TokenQuadratic"}
    for name, signature in signatures():
        if "alpha" in signature.parameters and name not in single:
            assert "log_alpha" in signature.parameters, name


def test_one_word_for_one_thing():
    used = set()
    for name, signature in signatures():
        for word in signature.parameters.keys() & OLD_WORDS.keys():
            assert (name, word) in ALLOWED, f"{name}: {word} is called {OLD_WORDS[word]} here"
            used.add((name, word))
    assert used == ALLOWED.keys(), f"no longer needed: {ALLOWED.keys() - used}"


def test_every_maker_of_a_problem_is_listed():
    found = {
        name
        for name in tacit.__all__
        if getattr(tacit, name).__module__.startswith("tacit.problems.")
        and inspect.isfunction(getattr(tacit, name))
    }
    assert found == MAKERS.keys() | DATA


@pytest.mark.parametrize("name", MAKERS)
def test_makers_take_samples_and_dimension_and_then_names(name):
    signature = inspect.signature(getattr(tacit, name))
    assert positional(signature) == MAKERS[name]
    words = list(signature.parameters)
    if "seed" in words:
        assert words[-1] == "seed"
    for noise in {"noise", "snr"} & set(words):
        assert words[-2:] == [noise, "seed"]


@pytest.mark.parametrize("name", MAKERS)
def test_an_old_call_by_position_is_refused(name):
    with pytest.raises(TypeError, match="positional argument"):
        getattr(tacit, name)(*[5, 4, 3, 2][: len(MAKERS[name]) + 1])


def test_samples_come_before_the_dimension():
    sensed = tacit.gaussian_sensing(7, 3, rank=1)
    assert (sensed.samples, sensed.truth.shape) == (7, (3, 3))
    assert tacit.commuting_sensing(2, 5).measurements.shape == (2, 5, 5)
    seen = tacit.low_rank_completion(6, 4, rank=2)
    assert (len(seen.entries), seen.shape) == (6, (4, 4))
    assert tacit.teacher_student(9, 4, width=6, outputs=1).training.X.shape == (9, 4)
