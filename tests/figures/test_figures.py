"""Figures: their numbers by a second route, their drawings readable, their files all or none."""

import json

import numpy as np
import pytest
import xarray

import tacit.store
from figure_checks import assert_axes_named, assert_captioned
from tacit.figures import draw, figure, figures, make, recovery, registry, write
from tacit.figures.woodworth_f3 import ratio, unit_curvature
from tacit.plotting.style import styled
from tacit.problems import sparse_regression
from tacit.regularizers.q import Q

SMALL = {
    "dimension": 80,
    "sparsity": 2,
    "seeds": 3,
    "sample_sizes": [10, 22, 30, 45],
    "l1_sample_sizes": [10, 40, 6],
    "log10_mu_range": [1.0, -16.0],
    "per_decade": 3,
}
PARAMETERS = {
    "W-F1": {**SMALL, "samples": 30, "alphas": 29},
    "W-F2": {"points": 41},
    "W-F3": {**SMALL, "depths": [2, 3, 10], "points": 33, "ratio_dimension": 100},
    "W-F4": {},
    "W-F9": {},
}


@pytest.fixture(scope="module")
def made():
    """Every registered figure's dataset at a small size."""
    return {id: make(id, parameters) for id, parameters in PARAMETERS.items()}


# ---- the registry ----


def test_the_registry_lists_every_figure_with_both_presets():
    assert set(PARAMETERS) <= set(figures())
    for entry in figures().values():
        assert {"quick", "paper"} <= set(entry.presets)
        assert entry.presets["quick"].keys() == entry.presets["paper"].keys()
        assert "et al. 20" in entry.source
        assert entry.title
        assert entry.id in str(entry)


def test_wrong_names_are_refused_with_the_nearest_ones():
    with pytest.raises(ValueError, match=r"figure: unknown id 'W-F11'; did you mean .*W-F1"):
        make("W-F11")
    with pytest.raises(ValueError, match=r"unknown preset 'papers'; did you mean paper\?"):
        make("W-F2", "papers")
    with pytest.raises(ValueError, match="unknown parameter 'zmax'; did you mean z_max"):
        make("W-F2", {"zmax": 3})
    with pytest.raises(ValueError, match="unknown format 'jpeg'"):
        write("W-F2", formats=["jpeg"])


def test_an_id_is_given_only_once():
    with pytest.raises(ValueError, match="'W-F2' is taken by"):
        figure("W-F2", title="", source="", data=None, presets={})


def test_a_drawing_refuses_the_data_of_another_figure(made):
    with pytest.raises(ValueError, match="must be made for W-F1, this one is for W-F2"):
        draw("W-F1", made["W-F2"])


def test_progress_counts_up_to_the_whole():
    calls = []
    make("W-F3", {**PARAMETERS["W-F3"], "seeds": 1}, progress=lambda *call: calls.append(call))
    total = 3 * 4 + 5  # depths times sizes, and the sizes of the l1 predictor
    assert calls == [(k, total) for k in range(1, total + 1)]


# ---- the numbers ----


def test_every_dataset_says_what_its_numbers_are(made):
    for id, dataset in made.items():
        for name, variable in dataset.variables.items():
            assert variable.attrs.get("long_name"), (id, name)
            assert variable.attrs.get("units"), (id, name)
        assert (
            json.loads(dataset.attrs["parameters"]).keys() == figures()[id].presets["quick"].keys()
        )
        assert dataset.attrs["preset"] == "own"
    assert "d, N, r*" in made["W-F1"].attrs["constructed"]


def test_q_and_r_against_their_definitions(made):
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar

    def slow_r(z):
        """Least |w - 1|^2 with w+^2 - w-^2 = z, by a search over w-."""
        distance = lambda v: (np.sqrt(z + v * v) - 1) ** 2 + (v - 1) ** 2  # noqa: E731
        return minimize_scalar(
            distance, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}
        ).fun

    near = made["W-F2"].where(made["W-F2"].z > 0, drop=True)
    q = [quad(lambda u: np.arcsinh(u / 2), 0, z)[0] for z in near.z.values]
    r = [slow_r(z) for z in near.z.values]
    np.testing.assert_allclose(near.q, q, rtol=1e-10)
    np.testing.assert_allclose(near.r, r, rtol=1e-8)
    assert not np.allclose(near.q, r, rtol=0.1)  # the control: q is not r ...
    scaled = near.q / near.r
    assert scaled.max() / scaled.min() > 1.2  # ... nor a rescaling of it


def test_q_and_r_near_zero_and_far_out(made):
    dataset = make("W-F2", {"points": 5, "z_max": 1e-3, "log10_far": [0.0, 8.0]})
    edge = dataset.isel(z=-1)
    np.testing.assert_allclose([edge.q / edge.z**2, edge.r / edge.z**2], [1 / 4, 1 / 8], rtol=1e-5)
    far = dataset.isel(far=-1)
    np.testing.assert_allclose(far.r_ratio, 1.0, rtol=1e-3)
    # q(z) = z log z - z + O(1/z); the source prints it without the linear term
    np.testing.assert_allclose(far.q_ratio, np.log(far.far) - 1, rtol=1e-6)


def test_ratio_reaches_both_limits_and_rises_between(made):
    rows = made["W-F3"]
    assert (rows.ratio.diff("alpha") <= 1e-12).all()  # alpha falls along the grid
    np.testing.assert_allclose(rows.ratio.isel(alpha=0), 1.0, atol=1e-4)
    deep = rows.ratio.sel(depth=[3, 10]).isel(alpha=-1)
    np.testing.assert_allclose(deep, rows.sparse_limit, rtol=1e-3)
    assert rows.sparse_limit == 0.1
    slow = rows.ratio.sel(depth=2).isel(alpha=-1)
    assert slow > 1.05 * rows.sparse_limit  # the control: at depth 2 this alpha is not enough ...
    np.testing.assert_allclose(ratio(2, 1e-300, 100), 0.1, rtol=3e-3)  # ... this one is


def test_q_of_every_depth_starts_with_curvature_one_and_ends_with_a_slope():
    step = 1e-3
    for depth in (2, 3, 4, 10):
        left, middle, right = unit_curvature(depth, np.array([-step, 0.0, step]))
        np.testing.assert_allclose((left - 2 * middle + right) / step**2, 1.0, rtol=1e-4)
    far = np.array([1e8, 2e8])
    for depth in (3, 4, 10):
        slope = np.diff(unit_curvature(depth, far))[0] / 1e8
        np.testing.assert_allclose(slope, 2 * depth / (depth - 2), rtol=5e-3)
    assert np.diff(unit_curvature(2, far))[0] / 1e8 > 30  # depth 2 has no last slope


def test_excess_norms_vanish_at_their_ends(made):
    rows = made["W-F1"]
    assert (rows.excess_l1 > -1e-9).all()
    assert (rows.excess_l2 > -1e-9).all()
    least = np.abs(interpolating(made).truth).sum()
    assert rows.excess_l2.sel(alpha=10, method="nearest") < 1e-4
    assert rows.excess_l1.sel(alpha=1e-6, method="nearest") < 0.05 * least
    assert rows.excess_l1.sel(alpha=10, method="nearest") > 0.5 * least  # the controls
    assert rows.excess_l2.sel(alpha=1e-6, method="nearest") > 0.1


def interpolating(made):
    """The problem of the panels (a) and (b) of W-F1."""
    parameters = json.loads(made["W-F1"].attrs["parameters"])
    names = ("samples", "dimension", "sparsity", "noise")
    return sparse_regression(**{name: parameters[name] for name in names}, seed=0)


def test_population_error_against_fresh_samples(made):
    from scipy.optimize import minimize

    problem, rows = interpolating(made), made["W-F1"]
    fresh = np.random.default_rng(1).normal(size=(20000, 80))
    for place in (3, 14, 28):  # large, middle and small alpha
        mu = float(rows.alpha[place]) ** 2

        def dual(nu, mu=mu):
            """2 mu sum cosh(X^T nu) - y nu, whose minimiser gives the predictor."""
            s = problem.X.T @ nu
            slope = problem.X @ (2 * mu * np.sinh(s)) - problem.y
            return 2 * mu * np.cosh(s).sum() - problem.y @ nu, slope

        nu = minimize(dual, np.zeros(30), jac=True, method="BFGS", options={"gtol": 1e-7}).x
        beta = 2 * mu * np.sinh(problem.X.T @ nu)
        measured = np.mean((fresh @ (beta - problem.truth)) ** 2)
        np.testing.assert_allclose(rows.population_error[place], measured, rtol=0.05)


def test_l1_error_against_a_linear_program():
    from scipy.optimize import linprog

    problem = sparse_regression(samples=25, dimension=80, sparsity=2, noise=0.1, seed=4)
    program = linprog(np.ones(160), A_eq=np.hstack([problem.X, -problem.X]), b_eq=problem.y)
    beta = program.x[:80] - program.x[80:]
    expected = np.sum((beta - problem.truth) ** 2)
    got = recovery.l1_error(problem.X, problem.y, problem.truth)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert abs(np.sum(problem.truth**2) - got) > 0.1 * got  # the control: not the zero predictor's


@pytest.mark.parametrize("depth", [2, 3])
def test_largest_scale_sits_where_the_error_crosses_the_level(depth):
    from tacit.solvers.interpolate import interpolate

    problem = sparse_regression(samples=40, dimension=80, sparsity=2, noise=0.1, seed=1)
    level, falling = 0.025, np.log(10) * np.linspace(1, -12, 53)

    def largest(n, grid):
        data = problem.X[:n], problem.y[:n], problem.truth
        return recovery.largest_log_mu(*data, depth, grid, level)

    def error(log_mu):
        beta = interpolate(problem.X, problem.y, Q(depth, log_alpha=log_mu / depth)).beta
        return float(recovery.population_error(beta, problem.truth))

    found = largest(40, falling)
    np.testing.assert_allclose(error(found), level, rtol=0.03)
    assert error(found + 1.5) > 1.1 * level  # the control: a larger start misses the level
    assert largest(40, falling[::2]) == pytest.approx(found, abs=0.1)
    assert largest(5, falling) == -np.inf  # five samples are not enough for any start
    assert largest(40, falling[-5:]) == falling[-5]  # the whole grid passes


def test_medians_count_a_hopeless_seed_as_zero():
    log_mu = np.array([[[-np.inf, -np.inf, -1.0], [-np.inf, -3.0, -1.0], [-2.0, -3.0, -1.0]]])
    errors = np.array([[0.1, 0.1, 0.01], [0.1, 0.01, 0.01], [0.1, 0.1, 0.01], [0.1, 0.01, 0.01]])
    dataset = xarray.Dataset(
        {
            "log_mu": (("depth", "sample_size", "seed"), log_mu),
            "l1_error": (("l1_sample_size", "seed"), errors),
        },
        coords={"l1_sample_size": [10, 20, 30, 40]},
    )
    rows = recovery._with_medians(dataset, level=0.025)
    np.testing.assert_array_equal(rows.median_log_mu, [[np.nan, -3.0, -2.0]])
    assert rows.l1_threshold == 20  # with 10 samples two of three seeds miss the level
    assert np.isnan(recovery._with_medians(dataset, level=0.001).l1_threshold)
    assert recovery._with_medians(dataset, level=1.0).l1_threshold == 10


def test_recovery_is_easier_with_more_samples_and_more_depth(made):
    rows = made["W-F3"].median_log_mu
    assert np.isnan(rows.sel(sample_size=10)).all()
    assert (rows.sel(sample_size=45) > rows.sel(sample_size=22).fillna(-np.inf)).all()
    assert (rows.sel(sample_size=[30, 45]).diff("depth") > 0).all()
    assert 10 < made["W-F3"].l1_threshold <= 34
    np.testing.assert_allclose(made["W-F1"].median_log_alpha * 2, rows.sel(depth=2))


# ---- the drawings ----


@pytest.mark.parametrize("id", sorted(PARAMETERS))
def test_a_drawing_has_a_title_a_caption_names_and_a_legend(made, id):
    picture = draw(id, made[id])
    assert_captioned(id, picture)
    assert_axes_named(picture)


def covered(picture):
    """How many drawn points lie under a legend."""
    picture.canvas.draw()
    count = 0
    for axes in (axes for axes in picture.axes if axes.get_legend()):
        box = axes.get_legend().get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            count += int(np.sum([box.contains(*point) for point in points]))
    return count


@pytest.mark.parametrize("id", ["W-F1", "W-F2", "W-F3"])
def test_no_legend_covers_a_curve(made, id):
    with styled():
        picture = draw(id, made[id])
        assert covered(picture) == 0
        for axes in (axes for axes in picture.axes if axes.get_legend()):
            place = axes.lines[0].get_xydata()[len(axes.lines[0].get_xydata()) // 2]
            axes.legend(loc="center", bbox_to_anchor=place, bbox_transform=axes.transData)
        assert covered(picture) > 0  # the control: a legend on a curve is seen


def test_a_drawing_depends_on_the_dataset_alone(made, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "make", None)
    tacit.store.save(made["W-F3"], tmp_path / "a.nc")
    loaded = tacit.store.load(tmp_path / "a.nc")
    pixels = []
    changed = made["W-F3"].copy(deep=True)
    changed["ratio"] = changed.ratio**2
    for dataset in (made["W-F3"], loaded, changed):
        picture = draw("W-F3", dataset)
        picture.canvas.draw()
        pixels.append(np.asarray(picture.canvas.buffer_rgba()))
    assert np.array_equal(pixels[0], pixels[1])
    assert not np.array_equal(pixels[0], pixels[2])  # the control: other data, another picture


# ---- the files ----


def test_write_leaves_pictures_and_data_side_by_side(tmp_path):
    files = write("W-F2", {"points": 11}, tmp_path / "new" / "folder")
    assert [file.name for file in files] == ["W-F2.nc", "W-F2.png", "W-F2.svg"]
    assert sorted((tmp_path / "new" / "folder").iterdir()) == files
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[2].read_bytes()[:1000]
    loaded = tacit.store.load(files[0])
    xarray.testing.assert_identical(loaded.drop_attrs(), make("W-F2", {"points": 11}).drop_attrs())
    assert loaded.attrs["figure"] == "W-F2"


def test_the_same_data_give_the_same_files(tmp_path):
    for folder in ("a", "b"):
        write("W-F9", folder=tmp_path / folder)
    for name in ("W-F9.png", "W-F9.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def full(dataset, file):
        file.write_bytes(b"half")
        raise OSError("no space left")

    before = {tmp_path / f"W-F2.{kind}": b"earlier" for kind in ("png", "svg", "nc")}
    for file, content in before.items():
        file.write_bytes(content)
    monkeypatch.setattr(tacit.store, "save", full)
    with pytest.raises(OSError, match="no space left"):
        write("W-F2", {"points": 12}, tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(OSError, match="no space left"):
        write("W-F2", {"points": 12}, tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file; name a directory"):
        write("W-F9", folder=tmp_path / "file")
    (tmp_path / "W-F9.png").mkdir()
    with pytest.raises(ValueError, match=r"W-F9\.png in .* is a directory; move it"):
        write("W-F9", folder=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["W-F9.png", "file"]
