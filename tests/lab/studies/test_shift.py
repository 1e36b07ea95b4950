"""Shifted seeds: where the number is added, and what stays as it is."""

import numpy as np
import pytest

import penchant
from penchant import Study
from penchant.lab import sized


def cell(number, seed, *, runs=()):
    return {
        "drawn": float(np.random.default_rng(seed).normal()),
        "runs": sum(r["seed"] for r in runs),
    }


SIZES = sized(
    "shifting",
    function=cell,
    arguments={"runs": [{"seed": 1, "steps": 5}, {"seed": [2, 3], "steps": 1}]},
    grid={"number": [1, 2]},
    seeds=[4, 7],
)


def test_every_seed_moves_and_nothing_else():
    plain, moved = SIZES.at(), SIZES.at(shift=1000)
    assert moved.name == "shifting-shift-1000"
    assert moved.seed_values == (1004, 1007)
    assert moved.arguments["runs"] == [
        {"seed": 1001, "steps": 5},
        {"seed": [1002, 1003], "steps": 1},
    ]
    assert [axis.values for axis in moved.axes] == [(1, 2)]
    assert SIZES.at(shift=0).describe() == plain.describe()


def test_an_axis_of_seeds_and_the_seeds_of_parts_move():
    study = Study(
        name="parts",
        problem={"is": "sparse_regression", "samples": 3, "dimension": 6, "sparsity": 1, "seed": 5},
        model={"is": "DiagonalNet", "depth": 2, "alpha": 0.1},
        method={"is": "DualFlow"},
        final=("norm_l1",),
        grid={"model.alpha": [0.1, 0.2]},
    )
    assert study.shifted(10).problem["seed"] == 15
    axis = sized("axis", function=cell, arguments={"number": 0}, grid={"seed": [3, 4]})
    assert axis.at(shift=5).axes[0].values == (8, 9)


def test_cells_are_kept_apart_and_the_seeds_are_those_that_were_drawn(tmp_path):
    study = sized("two", function=cell, grid={"number": [0]}, seeds=3)
    plain, moved = (penchant.run(study.at(shift=k), tmp_path) for k in (0, 2))
    assert list(moved.seed.values) == [2, 3, 4]
    assert float(plain.drawn.sel(seed=2)[0]) == float(moved.drawn.sel(seed=2)[0])
    assert sorted(file.name for file in tmp_path.glob("*.nc")) == ["two-shift-2.nc", "two.nc"]


@pytest.mark.parametrize("shift", [-1, 0.5, "a"])
def test_a_shift_is_a_whole_number(shift):
    with pytest.raises(ValueError, match="Study: shift must be"):
        SIZES.at(shift=shift)
