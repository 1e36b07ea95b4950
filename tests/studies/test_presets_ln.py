"""The studies behind the figures of L and N: their parameters, and cells against the figures."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tacit.figures  # noqa: F401  registers the figures
from preset_cells import tiny, values
from tacit.figures.notsawo_held import shares_of
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
    "N-F1": ("printed_t1", "printed_t2"),
    "N-F2": ("log2_range", "per_doubling", "net_seeds"),
    "N-F3": ("betas", "steps"),
    "N-F-alg": ("betas",),
    "N-F-ts": ("step", "other_step"),
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
    assert len(IDS) == 12
    assert set(IDS) <= set(STUDIES)
    assert all(owner(name) for name in STUDIES)
    assert family("N-F2") == ["N-F2", "N-F2-path", "N-F2-sparse"]


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
    for name in ("N-F2", "N-F2-sparse"):
        shares = 2.0 ** np.array(axis(read_study(name, form), "log2_share"))
        assert np.array_equal(shares, shares_of(of["N-F2"]))
        assert 1.0 in shares
    assert len(read_study("N-F2", form).seed_values) == of["N-F2"]["net_seeds"]
    for id, names in (("N-F3", ("betas", "steps")), ("N-F-alg", ("betas",))):
        study = read_study(id, form)
        for name in names:
            assert [study.arguments[name][p] for p in of[id]["penalties"]] == of[id][name]
        assert axis(study, "rank") == list(range(len(of[id]["betas"][0])))
    for name in ("step", "other_step"):
        assert of["N-F-ts"][name] in axis(read_study("N-F-ts", form), "step")
    assert read_study("N-F-ts", form).arguments["first_step"] == of["N-F-ts"]["step"]
    pairs = read_study("N-F-ts-descent", form)
    assert axis(pairs, "pair") == list(range(len(of["N-F-ts"]["descent"])))


def test_a_wrong_key_is_told_before_anything_runs():
    with pytest.raises(ValueError, match=r"unknown key in arguments 'relevnt'.*relevant"):
        tiny("L-F1", arguments={"relevnt": 3})
    table = read_study("L-F1").describe()
    del table["arguments"]["end"]
    with pytest.raises(ValueError, match=r"lacks 'end', which cell needs"):
        Study(**table)
    assert "batch" not in read_study("N-F1").arguments  # it has a default


def test_names_beyond_the_grid_are_told_by_the_cell():
    for name, place in (("N-F2-sparse", "norm"), ("N-F-ts", "kind")):
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


def test_rescaling_is_the_figure_s():
    figure = make("N-LU", {"points": 21}).sel(degree=2.0)
    found = values(tiny("N-LU", arguments={"points": 21}), 1)
    for name in ("scale", "squared_norm", "change", "least"):
        assert same(found[name], figure[name].values)
    assert math.isclose(found["squared_norm"].min(), found["least"], rel_tol=0.1)
    assert not math.isclose(found["squared_norm"].max(), found["least"], rel_tol=0.1)


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
def test_runs_of_token_nets_are_the_figures():
    figure = make("N-F3", {**TOKENS, "penalties": ["l1", "l2^2"], "betas": [[1e-3], [1e-2]],
                           "steps": [300, 200]})  # fmt: skip
    own = {**TOKENS, "betas": {"l1": [1e-3], "l2^2": [1e-2]}, "steps": {"l1": 300, "l2^2": 200}}
    grid = {"penalty": ["l1", "l2^2"], "rank": [0]}
    found = values(tiny("N-F3", arguments=own, grid=grid), 1)
    run = figure.sel(penalty="l2^2").isel(rank=0).dropna("step", subset=["norm_l2"])
    for name in ("step", "test_accuracy", "norm_l2"):
        assert same(found[f"trajectory_{name}"], run[name].values)
    for name in ("beta", "t1", "kind"):
        assert same(found[name], run[name].values)
    small = {**TOKENS, "budget": 300, "level": 0.6}
    figure = make("N-F-alg", {**small, "steps": [0.01], "penalties": ["l1"],
                              "betas": [[1e-3, 1e-4]]})  # fmt: skip
    own, grid = {**small, "betas": {"l1": [1e-3, 1e-4]}}, {"penalty": ["l1"], "step": [0.01]}
    both = [values(tiny("N-F-alg", arguments=own, grid=grid), place) for place in (0, 1)]
    for name in ("t1", "t2", "pace", "clock"):
        assert same([one[name] for one in both], figure[name].values.ravel())
    seeds, small = [0, 3], {**TOKENS, "modulus": 11, "steps": 300}
    figure = make("N-F1", {**small, "seeds": seeds}).sel(seed=3)
    found = values(tiny("N-F1", arguments=small, seeds=seeds), 1)
    for name in ("t1", "plateau", "twins"):
        assert same(found[name], figure[name].values)
    assert same(found["trajectory_novel_accuracy"], figure.novel_accuracy.values)


@pytest.mark.slow
def test_held_norms_are_the_figure_s():
    """One norm at a time and all at once differ by rounding alone."""
    net = {"inputs": 6, "width": 20, "samples": 30, "net_steps": 300}
    sparse = {"sparse_steps": 500, "l2_steps": 500}
    path = {"path_steps": 6000, "path_points": 40}
    figure = make("N-F2", {**net, **sparse, **path, "net_seeds": 2, "log2_range": [-1.0, 1.0],
                           "per_doubling": 1})  # fmt: skip
    grid = {"log2_share": [-1.0, 0.0, 1.0]}
    study = tiny("N-F2", arguments=net, grid=grid, seeds=2)
    for place, (share, seed) in enumerate([(s, k) for s in (0.5, 1.0, 2.0) for k in (0, 1)]):
        found, at = values(study, place), figure.sel(share=share, net=seed)
        for name in ("train", "test", "rescaled"):
            assert np.isclose(found[name], at[name], rtol=1e-6, atol=0, equal_nan=True), name
    assert np.isnan(values(study, 0)["rescaled"])
    assert not np.isclose(found["test"], found["rescaled"], rtol=1e-3)
    study = tiny("N-F2-sparse", arguments=sparse, grid=grid)
    for place, (share, norm) in enumerate([(s, n) for s in (0.5, 1.0, 2.0) for n in ("l2", "l1")]):
        found, at = values(study, place), figure.sel(share=share, norm=norm)
        assert np.isclose(found["error"], at.error, rtol=1e-6, atol=1e-12)
        assert ("exact_error" in found) == (norm == "l2")
    assert values(study, 0)["exact_error"] == float(figure.exact_error[0])
    found = values(tiny("N-F2-path", arguments=path))
    assert same(found["trajectory_error"], figure.path_error.values)


@pytest.mark.slow
def test_students_are_the_figure_s():
    sizes = {"samples": 20, "sizes": [6, 8, 2], "units": 1, "reads": 1, "sobolev_samples": 12,
             "sobolev_sizes": [3, 4, 1], "width": 12, "level": 0.1}  # fmt: skip
    pairs = [[0.01, 0.3], [0.005, 0.3]]
    figure = make("N-F-ts", {**sizes, "betas": [0.3, 0.1], "step": 0.02, "steps": 400,
                             "other_step": 0.01, "descent": pairs, "reach": 1.0})  # fmt: skip
    own = {**sizes, "first_step": 0.02, "steps": 400}
    study = tiny("N-F-ts", arguments=own, grid={"beta": [0.3, 0.1], "step": [0.02, 0.01]})
    for place, kind in ((2, "l1"), (6, "sobolev")):
        found = values(study, place)
        assert same(found["trajectory_test"], figure[f"{kind}_test"].sel(beta=0.1).values)
        assert same(found["t2"], figure[f"{kind}_t2"].sel(beta=0.1).values)
        late = values(study, place + 1)["t2"]
        assert same(late, figure[f"{kind}_slower"].sel(beta=0.1).values)
    own = {**sizes, "betas": [0.3, 0.1], "step": 0.02, "steps": 400}
    study = tiny("N-F-ts-controls", arguments=own)
    for place, name in enumerate(axis(study, "control")):
        found = values(study, place)["trajectory_test"]
        assert same(found, figure[f"{name.replace(' ', '_')}_test"].values), name
    study = tiny("N-F-ts-descent", arguments={**sizes, "descent": pairs, "reach": 1.0},
                 grid={"pair": [0, 1]})  # fmt: skip
    assert same([values(study, k)["t2"] for k in (0, 1)], figure.descent_t2.values)
    assert not same(*[values(study, k)["trajectory_test"][:20] for k in (0, 1)])


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
