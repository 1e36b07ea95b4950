"""The studies behind the figures of L and N: their parameters, and cells against the figures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tacit.figures  # noqa: F401  registers the figures
from preset_cells import tiny, values
from tacit.figures.registry import figures, make
from tacit.studies.cells import cells_of
from tacit.studies.compute import OK, compute
from tacit.studies.forms import merged
from tacit.studies.reading import PRESETS, presets, read_study
from tacit.studies.run import run_study
from tacit.studies.study import Study

IDS = [id for id in figures() if id.startswith(("L-", "N-"))]
STUDIES = [name for name in presets() if name.startswith(("L-", "N-"))]
FORMS = ("quick", "paper")
# parameters of a figure that a study says in other words; see the tests that name them
OWN_WORDS = {
    "N-F-data": ("timed_samples", "shown_samples", "shown_seed", "shown_shares"),
    "N-F-depth": ("descended", "shown"),
}


def same(value, expected):
    """Equal to the last digit, NaN included."""
    text = np.asarray(expected).dtype.kind == "U"
    return np.array_equal(value, expected, equal_nan=not text)


# -- that there is one for each, with the figure's own parameters ----------------------------------


def family(id):
    """The studies of a figure: its own, and those beside it."""
    return [name for name in STUDIES if name == id or owner(name) == id]


def owner(name):
    """The figure that a study belongs to: the longest id that begins its name."""
    return max((id for id in IDS if name == id or name.startswith(f"{id}-")), key=len, default="")


def test_every_figure_has_its_study():
    assert set(IDS) <= set(STUDIES)
    assert all(owner(name) for name in STUDIES)
    assert owner("N-F-scaling-nuclear") == "N-F-scaling-nuclear"


def said(study):
    """(name, value) for everything that a study sets: arguments, parts, axes and seeds."""
    pairs = []

    def note(name, value):
        pairs.append((name, json.dumps(value)))
        for key, inner in value.items() if isinstance(value, dict) else ():
            note(key, inner)

    parts = ("arguments", "problem", "model", "method", "probes", "stop", "record")
    for table in (getattr(study, part) for part in parts):
        for name, value in table.items() if isinstance(table, dict) else ():
            note(name, value)
    seeds = list(study.seed_values or ())
    for name, found in [("seed", seeds), *((axis.name, list(axis.values)) for axis in study.axes)]:
        note(name, found)
        note("penalties" if name == "penalty" else f"{name}s", found)
        if len(found) == 1:
            note(name, found[0])
        if found == list(range(len(found))):
            note(f"{name}s", len(found))
    return pairs


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("id", IDS)
def test_a_study_has_the_parameters_of_its_figure(id, form):
    known = {pair for name in family(id) for pair in said(read_study(name, form))}
    for name, value in figures()[id].presets[form].items():
        if name in OWN_WORDS.get(id, ()) or value is None:
            continue
        assert (name, json.dumps(value)) in known, (id, form, name, value)
        if isinstance(value, float):  # a parameter that differs would be seen
            assert (name, json.dumps(1.5 * value + 0.1)) not in known


def axis(study, name):
    return list(next(axis.values for axis in study.axes if axis.name == name))


@pytest.mark.parametrize("form", FORMS)
def test_parameters_in_other_words(form):
    of = {id: figures()[id].presets[form] for id in IDS}
    sweep = read_study("L-sweep", form).arguments
    assert sweep["slowest"] == min(rate for rate in of["L-sweep"]["rates"] if rate > 0)
    assert sweep["largest"] == max(of["L-sweep"]["norms"])


@pytest.mark.parametrize("form", FORMS)
def test_parameters_of_the_runs_beside_a_sweep(form):
    data, depth = (figures()[id].presets[form] for id in ("N-F-data", "N-F-depth"))
    assert data["timed_samples"] in axis(read_study("N-F-data", form), "samples")
    runs = read_study("N-F-data-runs", form)
    assert axis(runs, "share") == data["shown_shares"]
    assert (runs.arguments["samples"], *runs.seed_values) == (
        data["shown_samples"], data["shown_seed"])  # fmt: skip
    runs = read_study("N-F-depth-runs", form)
    assert axis(runs, "samples") == depth["descended"]
    assert depth["shown"] in depth["descended"]


def test_a_wrong_key_is_told_before_anything_runs():
    with pytest.raises(ValueError, match=r"unknown key in arguments 'relevnt'.*relevant"):
        tiny("L-F1", arguments={"relevnt": 3})
    table = read_study("L-F1").describe()
    del table["arguments"]["end"]
    with pytest.raises(ValueError, match=r"lacks 'end', which cell needs"):
        Study(**table)


def test_names_beyond_the_grid_are_told_by_the_cell():
    for name, place in (("N-F-mirage", "penalty"),):
        study = tiny(name, grid={place: ["l3"]})
        result = compute(next(cells_of(study, "test")).spec)
        assert result.status == "error"
        assert f"unknown {place} 'l3'" in result.sentence


# -- cells against the figures ---------------------------------------------------------------------

LITTLE = {"samples": 20, "dimension": 40, "rtol": 1e-5, "t_first": 1.0, "points_per_decade": 5}


def test_the_transition_is_the_figure_s():
    found = values(tiny("L-F1", arguments=LITTLE, grid={"norm": [20.0], "rate": [1e-2]}))
    figure = make("L-F1", {**LITTLE, "norm": 20.0, "rate": 1e-2})
    for name in ("t", "test_accuracy", "turn", "share_l1"):
        assert same(found[f"trajectory_{name}"], figure[name].values)
    for name in ("jump", "forecast", "accuracy_l1"):
        assert same(found[name], float(figure[name]))
    other = values(tiny("L-F1", arguments=LITTLE, grid={"norm": [21.0], "rate": [1e-2]}))
    assert other["jump"] != found["jump"]


def test_the_sweep_is_the_figure_s_cell_by_cell(tmp_path):
    rates, norms = [0.0, 1e-2], [64.0]
    small = {"samples": 20, "dimension": 40, "rtol": 1e-4}
    study = tiny("L-sweep", arguments={**small, "slowest": 1e-2, "largest": 64.0},
                 grid={"rate": rates, "norm": norms})  # fmt: skip
    gathered = run_study(study, tmp_path, "here").isel(seed=0)
    figure = make("L-sweep", {**small, "rates": rates, "norms": norms})
    for name in ("t1", "t2", "delay", "kind", "final", "end"):
        assert same(gathered[name].values, figure[name].values), name
    assert not same(gathered.t1.values, figure.t2.values)
    # without decay a run is as long as the slowest one: another slowest, another end
    longer = values(tiny("L-sweep", arguments={**small, "slowest": 5e-3, "largest": 64.0},
                         grid={"rate": [0.0], "norm": [64.0]}))  # fmt: skip
    assert longer["end"] > 1.9 * float(figure.end.sel(rate=0.0, norm=64.0))


def test_recovery_is_the_figure_s():
    small = {"samples": 6, "dimension": 9, "sparsity": 1, "settle": 30.0}
    figure = make("N-F-scaling", {**small, "seed": 1, "steps": [0.1], "betas": [1e-3, 1e-2]})
    study = tiny("N-F-scaling", arguments=small, seeds=[1],
                 grid={"step": [0.1], "beta": [1e-3, 1e-2]})  # fmt: skip
    both = [values(study, place) for place in (0, 1)]
    for name in ("t1", "t2", "error", "penalized_error", "tau", "pace"):
        assert same(both[0][name], figure[name].isel(alpha=0, beta=0, missing_dims="ignore").values)
        assert same(both[1][name], figure[name].isel(alpha=0, beta=1, missing_dims="ignore").values)
    assert both[0]["error"] != both[1]["error"]
    assert "slope_beta" not in both[0]  # an exponent is no matter of one cell


def test_the_mirage_is_the_figure_s():
    small = {"samples": 6, "dimension": 9, "sparsity": 1, "steps": 6000, "beta": 1e-3,
             "linear_points": 30}  # fmt: skip
    figure = make("N-F-mirage", {**small, "seed": 1})
    study = tiny("N-F-mirage", arguments=small, seeds=[1])
    for place, penalty in enumerate(("l2", "l1")):
        found, run = values(study, place), figure.sel(penalty=penalty)
        assert found["kind"] == figure.attrs[f"kind_{penalty}"]
        for name in ("t1", "t2", "plateau", "foreseen", "floor"):
            assert same(found[name], run[name].values), name
        for name in ("step", "loss", "test_error"):
            assert same(found[f"trajectory_{name}"], run[name].values)
        assert found["left"] == float(run.test_error[-1])
    assert not same(found["trajectory_loss"], figure.loss.sel(penalty="l2").values)


# -- slower --------------------------------------------------------------------------------------

TOKENS = {"modulus": 7, "fraction": 0.6, "embedding": 8, "width": 16, "points_per_decade": 10}


@pytest.mark.slow
def test_a_run_from_tables_is_the_figure_s():
    steps = {"learning_rate": 1.0, "scaled": 300.0, "weight_decay": 1e-2}
    own = {"modulus": 11, "fraction": 0.6, "width": 32, "t": 800.0, **steps}
    figure = make("L-F3b", {**own, "alphas": [4.0]}).isel(alpha=0)
    study = tiny(
        "L-F3b",
        problem={"modulus": 11, "fraction": 0.6},
        model={"width": 32},
        method=steps,
        stop={"t": 800.0},
        grid={"model.alpha": [4.0]},
    )
    found = values(study)
    for name in ("t", "train_accuracy", "novel_accuracy", "kernel_distance"):
        assert same(found[f"trajectory_{name}"], figure[name].values), name
    for name in ("t1", "t2", "jump", "kind"):
        assert same(found[f"late_{name}"], figure[name].values), name
    level = Study(**merged(study.describe(), {"probes": {"late": {"level": 0.5}}}))
    assert values(level)["late_t1"] < found["late_t1"]


@pytest.mark.slow
def test_depth_and_data_selection_are_the_figures():
    small = {"dimension": 20, "sparsity": 2, "steps": 3000}
    figure = make("N-F-depth", {**small, "samples": [12], "depths": [2], "seeds": 2,
                                "descended": [12], "shown": 12})  # fmt: skip
    sizes = {"dimension": 20, "sparsity": 2}
    found = values(tiny("N-F-depth", arguments=sizes, grid={"samples": [12], "depth": [2]}), 1)
    assert same(found["error"], figure.error.sel(seed=1).values.item())
    assert same(found["sparse_error"], figure.sparse_error.sel(seed=1).values.item())
    assert found["error"] != figure.error.sel(seed=0).values.item()
    run = values(tiny("N-F-depth-runs", arguments=small, grid={"samples": [12], "depth": [2]}))
    assert same(run["trajectory_loss"], figure.loss.values.ravel())
    assert same(run["t1"], figure.t1.values.item())
    own = {"dimension": 6, "rank": 1, "steps": 2000}
    shown = {"timed_samples": 16, "shown_samples": 16, "shown_seed": 0, "shown_shares": [0.5]}
    figure = make("N-F-data", {**own, **shown, "samples": [16], "shares": [0.5], "seeds": 1})
    sizes = {"dimension": 6, "rank": 1}
    found = values(tiny("N-F-data", arguments=sizes, grid={"samples": [16], "share": [0.5]}))
    for name in ("error", "fewest", "delay"):
        assert same(found[name], figure[name].values.item())
    run = values(tiny("N-F-data-runs", arguments={**own, "samples": 16}, seeds=[0],
                      grid={"share": [0.5]}))  # fmt: skip
    assert same(run["trajectory_relative_error"], figure.relative_error.values.ravel())
    assert same(run["t2_foreseen"], figure.t2_foreseen.values.item())
    assert run["t2_foreseen"] != run["t2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_last_cell_of_every_preset(name):
    study = read_study(name)
    result = compute(list(cells_of(study, "test"))[-1].spec)
    assert result.status in OK, result.sentence
    dims = {key: value[0] for key, value in result.values.items() if isinstance(value, tuple)}
    assert not [key for key, own in dims.items() if f"{key}_0" in own], "an axis without a name"
    assert set(study.dims) <= set(dims)
    numbers = [value for value in result.values.values() if isinstance(value, float | int)]
    assert any(map(math.isfinite, numbers)) or study.dims


def test_presets_are_where_they_are_looked_for():
    assert all((PRESETS / f"{name}.toml").is_file() for name in STUDIES)
    assert not [file for file in Path(PRESETS).glob("[LN]-*") if file.suffix != ".toml"]
