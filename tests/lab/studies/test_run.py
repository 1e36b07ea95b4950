"""A study run: the right numbers, the same on all engines; failures are rows; nothing twice."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import penchant
from penchant import Study
from penchant.lab.studies.code import version as code
from penchant.lab.studies.estimate import estimate
from penchant.lab.studies.storage import folder as cache
from recorder import Recorder

ENGINES = [("here", 1), ("processes", 2)]


@pytest.fixture(autouse=True)
def fresh_code():
    """The texts of modules are forgotten after every test: the tree may be edited meanwhile."""
    code._SEEN.clear()


def of(function, grid, **more):
    return Study(name=function, function=f"study_cells:{function}", grid=grid, **more)


def test_penalty_and_batch_of_a_study_are_those_of_train(tmp_path):
    study = Study(
        name="batches",
        problem={"is": "sparse_regression", "samples": 8, "dimension": 6, "sparsity": 2, "seed": 4},
        model={"is": "LinearPredictor", "start": 0.5},
        method={"is": "GradientDescent", "learning_rate": 0.01, "subgradient": True},
        penalty={"is": "L1", "times": 0.1},
        stop={"is": "Steps", "count": 40},
        record={"is": "At", "steps": [10, 20]},
        batch=3,
        final=["predictor"],
        trajectory=["step"],
        grid={"penalty.times": [0.1, 0.5]},
        seeds=2,
    )
    dataset = penchant.run(study, tmp_path)
    problem = penchant.problems.sparse_regression(8, 6, sparsity=2, seed=4)
    ends = set()
    for times, seed in itertools.product([0.1, 0.5], [0, 1]):
        at = dataset.sel(times=times, seed=seed)
        path = penchant.train(
            penchant.models.LinearPredictor(0.5),
            problem,
            penchant.GradientDescent(0.01, subgradient=True),
            penalty=times * penchant.L1(),
            stop=penchant.Steps(40),
            record=penchant.record.At([10, 20]),
            batch=3,
            seed=seed,
        )
        np.testing.assert_array_equal(at.predictor, path.predictor)
        assert at.trajectory_step.values.tolist() == [0, 10, 20, 40]
        ends.add(path.predictor.tobytes())
    assert len(ends) == 4  # penalty and seed both count


def test_a_study_of_parts_is_the_loop_one_would_write(tmp_path):
    study = Study(
        name="scale",
        problem={"is": "sparse_regression", "dimension": 12, "sparsity": 2},
        model={"is": "DiagonalNet", "depth": 2},
        method={"is": "DualFlow", "rtol": 1e-6},
        stop=[{"is": "Interpolated", "relative": 1e-6}, {"is": "Time", "t": 1e9}],
        record={"is": "LogSpaced", "per_decade": 20},
        final=["test_error", "predictor"],
        trajectory=["t", "log_loss"],
        probes={
            "turn": {"is": "angle", "a": "$path.predictor", "b": "$problem.truth"},
            "rich": {
                "is": "interpolate",
                "X": "$problem.X",
                "y": "$problem.y",
                "regularizer": {"is": "L1"},
            },
        },
        grid={"model.alpha": [0.1, 1.0], "problem.samples": [5, 8]},
        seeds=2,
    )
    dataset = penchant.run(study, tmp_path)
    assert dataset.sizes["seed"] == 2
    for alpha, samples, seed in itertools.product([0.1, 1.0], [5, 8], [0, 1]):
        at = dataset.sel(alpha=alpha, samples=samples, seed=seed)
        problem = penchant.problems.sparse_regression(
            samples=samples, dimension=12, sparsity=2, seed=seed
        )
        flow = penchant.DualFlow(rtol=1e-6)
        path = penchant.train(
            penchant.DiagonalNet(depth=2, alpha=alpha),
            problem,
            flow,
            stop=penchant.stop.Interpolated(1e-6),
        )
        assert at.test_error == path.dataset.test_error[-1]
        np.testing.assert_array_equal(at.predictor, path.predictor)
        curve = at.trajectory_log_loss.dropna("time")
        np.testing.assert_array_equal(curve, path.dataset.log_loss)
        assert float(at.turn) == float(penchant.measures.angle(path.predictor, problem.truth))
        rich = penchant.interpolate(problem.X, problem.y, penchant.L1())
        np.testing.assert_array_equal(at.rich_beta, rich.beta)
        assert (str(at.status.values), str(at.sentence.values)) == (
            path.outcome.kind.value, path.outcome.sentence,
        )  # fmt: skip
    assert dataset.alpha.attrs["long_name"] == "model.alpha"
    assert "population error" in dataset.test_error.attrs["long_name"]


def test_the_file_is_the_dataset_and_says_where_it_comes_from(tmp_path):
    study = of("plain", {"a": [1.0, 3.0]}, seeds=2, dims={"curve": ["time"]}, title="A title",
               labels={"sum": "the sum"})  # fmt: skip
    dataset = penchant.run(study, tmp_path, command="penchant run plain.toml")
    assert penchant.load(tmp_path / "plain.nc").identical(dataset)
    assert dataset.curve.dims == ("a", "seed", "time")
    assert dataset.curve.isel(a=0).count() == 2 * 2  # the shorter curves end in NaN
    assert dataset.word.sel(a=3, seed=1) == "a3"
    assert dataset.whole.dtype == np.int64
    assert dataset["sum"].attrs["long_name"] == "the sum"
    assert dataset.attrs["title"] == "A title"
    assert dataset.attrs["command"] == "penchant run plain.toml"
    assert json.loads(dataset.attrs["versions"])["penchant"] == penchant.__version__
    again = Study(**json.loads(dataset.attrs["description"]))
    assert again.describe() == study.describe()


@pytest.mark.parametrize(("engine", "jobs"), ENGINES)
def test_failures_are_rows_with_their_sentence(tmp_path, engine, jobs):
    recorder = Recorder()
    dataset = penchant.run(
        of("moody", {"a": [0.0, 1.0, 2.0, 3.0]}), tmp_path, engine, jobs, recorder
    )
    assert list(dataset.status.values) == ["solved", "diverged", "error", "error"]
    assert list(dataset.sentence.values) == [
        "", "loss 1e300 after 7 steps", "ZeroDivisionError: no way",
        "MemoryError: of a small machine",
    ]  # fmt: skip
    np.testing.assert_array_equal(dataset.value, [0.0, np.nan, np.nan, np.nan])
    assert dataset.attrs["failed"] == 3
    again = Recorder()
    penchant.run(of("moody", {"a": [0.0, 1.0, 2.0, 3.0]}), tmp_path, "here", None, again)
    # what may be gone at the next try was not kept
    assert [done.sentence for done in again.ended] == ["MemoryError: of a small machine"]


@pytest.mark.parametrize("engine", ["here", "processes"])
def test_running_again_computes_only_what_is_missing(tmp_path, engine):
    traces = tmp_path / "traces"
    traces.mkdir()
    calls = {"arguments": {"folder": str(traces)}}
    penchant.run(of("marked", {"a": [1.0, 2.0]}, **calls), tmp_path, engine, 2)
    recorder = Recorder()
    wider = penchant.run(
        of("marked", {"a": [1.0, 2.0, 3.0]}, **calls), tmp_path, engine, 2, recorder
    )
    assert (recorder.total, len(recorder.before), len(recorder.ended)) == (3, 2, 1)
    penchant.run(of("marked", {"a": [2.0]}, **calls), tmp_path, engine, 2)
    assert {p.name: p.read_text() for p in traces.iterdir()} == dict.fromkeys("123", "called\n")
    np.testing.assert_array_equal(wider.value, [2.0, 4.0, 6.0])


def test_damaged_cells_are_named_and_computed_again(tmp_path):
    study = of("plain", {"a": [1.0, 2.0, 3.0]})
    penchant.run(study, tmp_path)
    whole = (tmp_path / "plain.nc").read_bytes()
    cells = sorted((tmp_path / "plain.cells").glob("??/*.cell"))
    cells[0].write_bytes(cells[0].read_bytes()[:50])
    cells[1].write_text("a shopping list")
    recorder = Recorder()
    penchant.run(study, tmp_path, progress=recorder)
    assert len(recorder.ended) == len(recorder.messages) == 2
    assert all(cell.name in " ".join(recorder.messages) for cell in cells[:2])
    assert (tmp_path / "plain.nc").read_bytes() == whole
    assert len(list((tmp_path / "plain.cells" / "aside").iterdir())) == 2


def test_cells_of_other_libraries_are_not_used_and_not_moved(tmp_path, monkeypatch):
    study = of("plain", {"a": [1.0, 2.0]})
    penchant.run(study, tmp_path)
    others = set((tmp_path / "plain.cells").glob("??/*.cell"))
    monkeypatch.setattr(code, "versions", lambda: {**penchant.versions.versions(), "numpy": "0.9"})
    recorder = Recorder()
    penchant.run(study, tmp_path, progress=recorder)
    assert len(recorder.ended) == 2
    assert recorder.messages == []
    assert others < set((tmp_path / "plain.cells").glob("??/*.cell"))


def test_a_file_of_cells_of_several_versions_says_so(tmp_path, monkeypatch):
    penchant.run(of("plain", {"a": [1.0]}), tmp_path)
    made = {**penchant.versions.versions(), "xarray": "1.0"}
    monkeypatch.setattr(cache, "versions", lambda: made)
    dataset = penchant.run(of("plain", {"a": [1.0, 2.0]}), tmp_path)
    assert dataset.mixed == f"xarray 1.0 and {penchant.versions.versions()['xarray']}"
    assert "mixed" not in penchant.run(of("plain", {"a": [2.0]}), tmp_path).attrs


def test_numbers_are_the_same_bit_for_bit_on_both_engines(tmp_path):
    study = of("product", {"a": [0.0, 1.0, 2.0]}, seeds=[3, 5])
    written = set()
    for engine, jobs in [*ENGINES, ("processes", 1)]:
        out = tmp_path / f"{engine}{jobs}"
        penchant.run(study, out, engine, jobs)
        written.add((out / "product.nc").read_bytes())
    assert len(written) == 1


def test_a_worker_that_is_killed_takes_only_its_cell_along(tmp_path):
    study = of("deadly", {"a": [float(a) for a in range(12)]},
               arguments={"folder": str(tmp_path)})  # fmt: skip
    dataset = penchant.run(study, tmp_path, "processes", 2)
    assert list(dataset.a.values[dataset.status.values != "solved"]) == [5.0]
    assert "2 worker processes ended" in str(dataset.sentence.sel(a=5).values)
    assert "signal 9" in str(dataset.sentence.sel(a=5).values)
    assert dataset.value.sel(a=7) == 7  # the second try went well


@pytest.mark.parametrize(("engine", "jobs"), ENGINES)
def test_a_fault_of_the_description_stops_the_run(tmp_path, engine, jobs):
    with pytest.raises(ValueError, match="Study: study: study_cells:wrong returns 'a', which"):
        penchant.run(of("wrong", {"a": [1.0, 2.0]}), tmp_path, engine, jobs)
    assert not list(tmp_path.glob("*.nc"))


def test_a_function_of_a_notebook_runs_here_only(tmp_path, monkeypatch):
    import __main__ as main

    def cell(a):
        return {"b": 2 * a}

    cell.__module__, cell.__qualname__ = "__main__", "cell"
    monkeypatch.setattr(main, "cell", cell, raising=False)
    study = Study(name="notebook", function=cell, grid={"a": [1.0]})
    assert penchant.run(study, tmp_path).b == 2
    with pytest.raises(ValueError, match="other processes cannot find it; move it into a module"):
        penchant.run(study, tmp_path / "other", "processes", 1)


def test_an_estimate_writes_nothing_and_learns_from_finished_cells(tmp_path):
    study = of("greedy", {"a": [1.0, 2.0, 3.0, 4.0]})
    before = estimate(study, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert (before.cells, before.finished, before.basis) == (4, 0, "3 sample cells")
    penchant.run(of("greedy", {"a": [1.0]}), tmp_path / "out")
    after = estimate(study, tmp_path / "out")
    assert (after.cells, after.finished, after.basis) == (4, 1, "the 1 finished cells")
    used = sum(file.stat().st_size for file in Path(tmp_path / "out").rglob("*.cell"))
    assert after.bytes == used == pytest.approx(before.bytes, rel=0.01)
    assert after.disk == pytest.approx(3 * used + 4 * used)
    assert after.wall(3) == pytest.approx(after.wall(1) / 3)
    assert estimate(of("moody", {"a": [2.0]}), tmp_path).failure == "ZeroDivisionError: no way"


def test_wrong_engines_are_refused():
    study = of("plain", {"a": [1.0]})
    with pytest.raises(ValueError, match="unknown engine 'proceses'; did you mean processes"):
        penchant.run(study, engine="proceses")
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        penchant.run(study, engine="processes", jobs=0)


def test_another_study_of_the_same_name_is_renamed(tmp_path):
    one, other = (
        Study(name="twin", function=f"study_cells:{f}", grid={"a": [1.0, 2.0]})
        for f in ("plain", "product")
    )
    results = [penchant.run(study, tmp_path) for study in (one, other)]
    recorder = Recorder()
    assert penchant.run(one, tmp_path, progress=recorder).equals(results[0])
    assert recorder.ended == []  # neither moves the other's cells
    assert (
        "held a different study of the same name; it was renamed to twin-" in recorder.messages[0]
    )
    stored = [penchant.load(file) for file in tmp_path.glob("twin-*.nc")]
    assert sorted(len(k.data_vars) for k in stored) == sorted(len(r.data_vars) for r in results)
    for _ in range(3):  # going to and fro adds no more files
        for study in (other, one):
            penchant.run(study, tmp_path)
    assert len(list(tmp_path.glob("twin*.nc"))) == 3
    assert not (tmp_path / "twin.cells" / "aside").exists()


def test_a_larger_grid_is_the_same_study(tmp_path):
    recorder = Recorder()
    for values in ([1.0], [1.0, 2.0]):
        penchant.run(
            of("plain", {"a": values}, title=f"{len(values)} values"), tmp_path, progress=recorder
        )
    assert recorder.messages == []
    assert len(list(tmp_path.glob("*.nc"))) == 1


def test_a_worker_that_dies_before_it_is_ready_is_replaced(tmp_path, monkeypatch):
    from penchant.lab.studies.engines import processes

    started = []

    class Frail(processes.Worker):
        def __init__(self, *given):
            super().__init__(*given)
            started.append(self)
            if len(started) <= lost:
                self.process.kill()

    monkeypatch.setattr(processes, "Worker", Frail)
    lost = 2
    assert (
        penchant.run(of("plain", {"a": [1.0]}), tmp_path, "processes", 1).status == "solved"
    ).all()
    started.clear()
    lost = 9
    with pytest.raises(OSError, match="3 worker processes could not start"):
        penchant.run(of("plain", {"a": [5.0]}), tmp_path, "processes", 1)


@pytest.mark.parametrize("grid", [{"a": {"linspace": [0, 1, 10**9]}}, {"a": [1.0]}])
def test_a_grid_that_nobody_could_finish_is_refused(grid):
    seeds = 10**9 if grid["a"] == [1.0] else None
    with pytest.raises(ValueError, match="1000000000 cells, and a study may have 10000000"):
        of("plain", grid, seeds=seeds)
    with pytest.raises(ValueError, match="the grid gives 25000000 cells"):
        of("plain", {"a": {"linspace": [0, 1, 5000]}, "b": {"linspace": [0, 1, 5000]}})
