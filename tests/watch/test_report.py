"""The report of a watch: its table, its figure, its files, its trackers and its command."""

import base64
import contextlib
import functools
import json
import math
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import penchant
from figure_checks import assert_axes_named, collisions
from penchant import load
from penchant.cli import app
from penchant.plotting import styled
from penchant.plotting.watch import MOST as POINTS
from penchant.plotting.watch import SHADES
from penchant.plotting.watch_table import MOST, chosen, shown
from penchant.store import json_checksum
from penchant.watch import DISTANCE_LIMITS, Watch, report
from penchant.watch.export import curves, findings
from penchant.watch.modules import module_moves
from penchant.watch.regime import regime, regimes
from penchant.watch.reporting import deliver, read


class Linear:
    """A backend in plain NumPy: f = x w^2, whose kernel turns as w does."""

    names, out_axis, notes = ("inner", "outer"), -1, ("the model is a toy",)
    count, projected, digest, groups = 1, False, "toy", (0, 1)
    x = np.random.default_rng(0).standard_normal((5, 12))
    first = np.ones(12)

    def check(self, params):
        if params is None:
            raise ValueError("watch: the parameters are missing at this call")

    @contextlib.contextmanager
    def at(self, arrays):
        yield np.append(arrays["inner"], arrays["outer"])

    def arrays(self, params):
        return {"inner": params[:8], "outer": params[8:]}

    def outputs(self, params):
        return (self.x @ params**2)[:, None]

    def kernels(self, params):
        rows = 2 * self.x * params
        return np.stack([part @ part.T for part in (rows[:, :8], rows[:, 8:])])

    def linearized(self, params):
        return (self.x @ (self.first**2 + 2 * self.first * (params - self.first)))[:, None]


TURN = np.array([6.0, -6.0] + 10 * [0.0])  # one weight falls, one grows, the others stay
SIGNS = np.resize([1.0, -1.0], 12)


def watched(decay=0.0, raising=False, labels=None, **options):
    clock = iter(np.arange(0.0, 1e6, 0.25))
    given = {"budget": None, "points_per_decade": 8, "step": 0} | options
    return Watch(
        Linear(), np.ones(12), lambda *shape: labels, weight_decay=decay, raise_errors=raising,
        clock=lambda: float(next(clock)), **given,
    )  # fmt: skip


@functools.cache
def run(steps=300, rate=0.01, **options):
    """A run whose parameters turn more and more, and whose test curve is late."""
    seen = watched(**options)
    start = options.get("step", 0)
    for step in range(1, steps + 1):
        train, test = 1 / (1 + (step / 5) ** -4.0), 1 / (1 + (step / 90) ** -8.0)
        params = 1 - TURN * min(rate * step, 1.0)
        seen(start + step, params, train_accuracy=train, test_accuracy=test, train_loss=1 / step)
    return seen


fresh = run.__wrapped__  # for what enters failures of its own


@pytest.fixture(scope="module")
def grown():
    return run()


def printed(dataset, width=120):
    """What the report of a record prints."""
    console = Console(width=width, record=True, highlight=False, file=open("/dev/null", "w"))  # noqa: SIM115
    read(dataset).print(console)
    console.file.close()
    return console.export_text()


def flat(text):
    return " ".join(text.split())


# the table and the sentences


def test_the_table_has_few_rows_with_the_numbers_of_the_record(grown):
    dataset = grown.dataset
    assert dataset.sizes["time"] > MOST
    lines = [line.split() for line in printed(dataset).splitlines()]
    rows = [
        line for line in lines if line and line[-1] in ("unknown", *SHADES) and line[0].isdigit()
    ]
    assert len(rows) == MOST
    steps = [float(row[0]) for row in rows]
    assert steps[0] == 0
    assert steps[-1] == dataset.step[-1]
    for row in rows[1:]:
        at = dataset.sel(time=dataset.step.values == float(row[0])).isel(time=0)
        names = ("kernel_distance", "linearized_error", "norm_l2", "direction_change")
        assert row[1:5] == [shown(float(at[name])) for name in names]
        assert float(row[1]) == pytest.approx(float(at.kernel_distance), rel=0.01)
    assert [row[-1] for row in rows[1:]] == [
        regimes(dataset)[i] for i in chosen(len(dataset.step))[1:]
    ]


def test_rows_are_chosen_from_the_first_to_the_last():
    for count in (1, 2, MOST, MOST + 1, 500):
        rows = chosen(count)
        assert rows[0] == 0
        assert rows[-1] == count - 1
        assert len(rows) == min(count, MOST)


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, ""), (-0.0, "0"), (0.012345, "0.0123"), (133000.0, "133000"), (2e9, "2e+09")],
)
def test_numbers_are_short(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_report_fits_every_width(grown, width):
    text = printed(grown.dataset, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    assert ("l1" in text) == (width >= 120)


def test_all_findings_are_told(grown, capsys):
    assert grown.report().dataset.identical(grown.dataset)
    text = flat(capsys.readouterr().out)
    assert f"regime {grown.regime.kind}: {grown.regime.evidence}" in text
    assert f"verdict grok: {grown.verdict.sentence}" in text
    assert f"forecast happened (at step 300): {grown.forecast.sentence}" in text
    assert "test_accuracy up to step 300)" in grown.verdict.sentence
    assert "test_accuracy had risen half way" in text
    attributes = grown.dataset.attrs
    share = attributes["look_seconds"] / attributes["training_seconds"]
    assert f"{share:.1%} of {attributes['training_seconds']:.3g} s of training (no limit)" in text
    assert f"set-up took {attributes['setup_seconds']:.3g} s" in text
    assert "note the model is a toy" in text
    assert "failure" not in text
    columns = text.split("regime")[0]
    assert "margin" not in columns  # there are no labels


def test_failures_are_told_with_their_count(capsys):
    seen = watched(budget=5.0)
    for step in (1, 2, 3):
        seen(step, None)
    seen("soon", np.ones(12))
    seen.report()
    text = flat(capsys.readouterr().out)
    assert "failure watch: the parameters are missing at this call (" in text
    assert "times, first at step 1)" in text
    assert "got str (1 time)" in text
    assert "(at most 500% allowed in 5 s and more, and 25 s in less)" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 1e-5}, ["Kernel regime (the model is lazy)", "grokked (training solved at step"]),
        ({"rate": 1e-5, "steps": 40}, ["Kernel regime", "no grokking so far"]),
        ({}, ["Rich regime", "grokked"]),
        ({"rate": 0.0004}, ["Leaving the kernel regime"]),
        ({"steps": 0}, ["Regime not known yet"]),
    ],
)
def test_the_headline_is_the_verdict(options, words):
    found = read(run(**options).dataset)
    for word in words:
        assert word in found.headline


def test_the_last_regime_is_the_regime():
    for rate in (1e-5, 0.001, 0.01):
        dataset = run(rate=rate).dataset
        assert regimes(dataset)[-1] == regime(dataset).kind
        assert regimes(dataset)[0] == "unknown"
    assert len(set(regimes(dataset))) == 4


# the figure


def spans(axes):
    """(left, right, colour) of the shaded spans."""
    from matplotlib.colors import to_hex

    found = [(p.get_x(), p.get_x() + p.get_width(), to_hex(p.get_facecolor()).upper())
             for p in axes.patches]  # fmt: skip
    return [span for span in found if span[2] in SHADES.values()]


def test_the_figure_shows_the_record(grown):
    dataset, found = grown.dataset, read(grown.dataset)
    picture = found.figure()
    assert picture.get_suptitle().replace("\n", " ") == found.headline
    accuracy, loss, kernel, norms, layers = picture.axes
    for axes in picture.axes:
        assert axes.get_ylabel()
        assert axes.get_legend() or axes is layers
    assert layers.get_xlabel() == "training step"
    lines = {line.get_label(): line for line in accuracy.lines + loss.lines + norms.lines}
    np.testing.assert_array_equal(lines["train accuracy"].get_ydata(), dataset.train_accuracy)
    np.testing.assert_array_equal(lines["test accuracy"].get_xdata(), dataset.call_step)
    np.testing.assert_array_equal(lines["train loss"].get_ydata(), dataset.train_loss)
    ratio = dataset.glance_norm.values[1:] / dataset.glance_norm.values[0]
    np.testing.assert_allclose(lines[r"$\ell_2$"].get_ydata(), ratio)
    ratio = dataset.norm_l1.values[1:] / dataset.norm_l1.values[0]
    np.testing.assert_allclose(lines[r"$\ell_1$"].get_ydata(), ratio)
    drawn = kernel.lines[0].get_ydata()
    np.testing.assert_allclose(drawn, np.maximum(dataset.kernel_distance[1:], 1e-6))
    assert {tuple(line.get_ydata()) for line in kernel.lines} >= {
        (limit,) * 2 for limit in DISTANCE_LIMITS
    }
    assert lines["test solved"].get_xdata()[0] == grown.verdict.t2


def test_the_regimes_are_shaded_where_they_are(grown):
    dataset = grown.dataset
    kinds, step = regimes(dataset), dataset.step.values
    kernel = read(dataset).figure().axes[-3]
    painted = spans(kernel)
    assert [colour for *_, colour in painted] == [SHADES[k] for k in ("kernel", "leaving", "rich")]
    for left, right, colour in painted:
        inside = [k for k, s in zip(kinds, step, strict=True) if left <= s < right]
        assert {SHADES[kind] for kind in inside} == {colour}
    assert {text.get_text() for text in kernel.texts} <= set(SHADES)
    assert {"kernel", "rich"} <= {text.get_text() for text in kernel.texts}


def decaying(steps=120):
    """A run under decay with the law of the theory: |delta| grows against the decayed start."""
    seen = watched(0.01)
    for step in range(1, steps + 1):
        start, delta = math.exp(-0.01 * step), 1e-3 * math.exp(0.03 * step)
        seen(step, start * (1 + delta * SIGNS), train_loss=1.0)
    return seen


def test_a_forecast_is_drawn_and_told():
    seen = decaying()
    found = read(seen.dataset)
    assert found.forecast.ahead
    expected = math.log(1000) / 0.03  # where the displacement is as long as the start
    assert found.forecast.low < expected < found.forecast.high
    assert found.forecast.low >= float(seen.dataset.glance_step.max()) > 100
    axes = found.figure().axes
    assert any(expected < line.get_xdata()[0] < found.forecast.high for line in axes[0].lines[1:])
    assert found.forecast.event == "weights"
    assert axes[-1].get_xlim()[1] > found.forecast.high
    hatched = [p for p in axes[0].patches if p.get_hatch()]
    assert [(p.get_x(), p.get_x() + p.get_width()) for p in hatched] == [
        pytest.approx((found.forecast.low, found.forecast.high))
    ]
    assert "end of the kernel regime forecast for steps" in found.headline
    assert "linearized" in str(axes[-3].get_legend_handles_labels()[1])
    assert not [p for p in read(run().dataset).figure().axes[0].patches if p.get_hatch()]


def test_a_transition_that_was_seen_is_told_as_seen():
    found = read(decaying(400).dataset)
    assert not found.forecast.ahead
    assert "the weights have left the kernel regime" in found.forecast.sentence
    assert found.forecast.step == pytest.approx(math.log(1000) / 0.03, rel=0.03)
    assert found.forecast.low == pytest.approx(math.log(250) / 0.03, rel=0.03)
    assert found.forecast.high == pytest.approx(math.log(4000) / 0.03, rel=0.03)
    assert "forecast" not in found.headline


def test_forecasts_are_drawn_as_they_were_made():
    """At the glances: a later look changes nothing in an earlier forecast."""
    early, late = decaying(120).dataset, decaying(400).dataset
    found = read(late)
    made = {step: (f.step, f.low, f.high) for step, f in found.forecasts}
    assert 3 < len(made) < late.sizes["glance"]  # too early first, and in the end it has happened
    before = [(step, f) for step, f in read(early).forecasts if step in made]
    assert len(before) > 2
    for step, f in before:
        assert made[step] == (f.step, f.low, f.high)
    (row,) = [a for a in found.figure().axes if a.get_ylabel().startswith("forecast")]
    line, happened, asked = row.lines
    np.testing.assert_array_equal(line.get_xdata(), list(made))
    np.testing.assert_array_equal(line.get_ydata(), [step for step, *_ in made.values()])
    drawn = [segment[:, 1].tolist() for segment in row.collections[0].get_segments()]
    assert drawn == [[low, high] for _, low, high in made.values()]
    assert happened.get_ydata()[0] == found.forecast.step
    np.testing.assert_array_equal(asked.get_xdata(), asked.get_ydata())
    (said,) = [text for name, text in found.rows() if name == "forecasts"]
    inside = [low <= found.forecast.step <= high for _, low, high in made.values()]
    assert f"which {sum(inside)} of the {len(made)} intervals contain" in said
    assert "has not been seen" in dict(read(early).rows())["forecasts"]
    assert "forecasts" not in dict(read(run().dataset).rows())


THREE = ["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias", "scale"]
DEEP = [f"transformer.h.{k}.{part}.weight" for k in range(12) for part in ("ln_1", "attn.c_attn",
        "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]  # fmt: skip


def with_layers(names):
    """A record of parameter arrays with these names, each further from the start than the last."""
    dataset = run().dataset
    old = [name for name, v in dataset.variables.items() if "layer" in v.dims]
    shape = (dataset.sizes["time"], len(names))
    far = np.outer(dataset.step.values, np.arange(1, 1 + len(names)) / 1000)
    values = {name: (("time", "layer"), np.ones(shape)) for name in ("layer_l1", "layer_l2")}
    values |= {"layer_moved": (("time", "layer"), far), "layer_distance": (("time", "layer"), far)}
    return dataset.drop_vars(old).assign_coords(layer=("layer", names)).assign(values)


def test_modules_move_as_their_parameters_do():
    rng = np.random.default_rng(0)
    starts = {"a.w": rng.normal(size=9), "a.b": np.zeros(3), "b.c.w": np.zeros(4), "d": np.ones(2)}
    moved = {name: value + rng.normal(size=value.shape) for name, value in starts.items()}
    dataset = with_layers(list(starts))
    size = np.array([[np.linalg.norm(v) for v in when.values()] for when in (starts, moved)])
    apart = [np.linalg.norm(moved[name] - starts[name]) for name in starts]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.array([[0.0] * 4, np.where(size[0] > 0, apart / size[0], np.nan)])
    dataset = dataset.isel(time=[0, -1]).assign(
        layer_l2=(("time", "layer"), size), layer_moved=(("time", "layer"), relative)
    )
    found = module_moves(dataset)
    assert found.names == ("a", "b.c", "d")
    joined = [np.concatenate([when["a.w"], when["a.b"]]) for when in (starts, moved)]
    expected = np.linalg.norm(joined[1] - joined[0]) / np.linalg.norm(joined[0])
    assert found.moved[-1][0] == pytest.approx(expected)
    assert found.moved[-1][1] == math.inf  # from zero
    assert found.moved[-1][2] == pytest.approx(apart[3] / 2**0.5)
    assert found.last[0][0] == "b.c"
    assert found.distance[-1].tolist() == dataset.layer_distance.values[-1][[1, 2, 3]].tolist()
    many = module_moves(
        with_layers([f"block.{k}.{part}.weight" for k in range(20) for part in "abcd"])
    )
    assert many.names == tuple(f"block.{k}" for k in range(20))


@pytest.mark.parametrize(("names", "modules"), [(THREE, 3), (DEEP, 60)])
def test_layers_are_readable_few_or_many(names, modules):
    dataset = with_layers(names)
    moves = module_moves(dataset)
    assert len(moves.names) == modules
    picture = read(dataset).figure()
    with styled():
        picture.draw_without_rendering()
    assert not (hit := collisions(picture)), hit
    layers = picture.axes[-1]
    (mesh,) = layers.collections
    shown_moves = moves.moved[1:].T
    np.testing.assert_allclose(mesh.get_array(), np.maximum(shown_moves, shown_moves.max() / 1000))
    ticks = layers.get_yticks() - 0.5
    assert [text.get_text() for text in layers.get_yticklabels()] == [
        moves.names[int(tick)] for tick in ticks
    ]
    assert 3 <= len(ticks) <= 30
    text = printed(dataset)
    last = moves.last
    assert flat(f"{last[0][0]} {shown(last[0][1])} {shown(last[0][2])}") in flat(text)
    assert ("52 others up to" in flat(text)) == (modules == 60)
    assert max(len(line) for line in printed(dataset, 60).splitlines()) <= 60


@pytest.mark.parametrize(
    "case", ["nothing", "no kernel", "resumed", "odd metrics", "percent", "negative"]
)
def test_every_record_can_be_drawn(case):
    if case == "nothing":
        seen = watched()
    elif case == "resumed":
        seen = run(step=5000)
    else:
        seen = watched()
        value = {"odd metrics": math.nan, "negative": -0.5}.get(case, 0.5)
        for step in range(1, 30):
            seen(
                step, np.ones(12) * (1 + step), loss=value, speed=3, acc=50 * value, error=0.9**step
            )
    dataset = seen.dataset
    if case == "no kernel":
        dataset = dataset.assign(kernel_distance=dataset.kernel_distance * math.nan)
    picture = read(dataset).figure()
    if case in ("nothing", "odd metrics"):
        picture.canvas.draw()
    assert_axes_named_below(picture)
    if case in ("percent", "negative"):
        assert picture.axes[0].get_ylim()[1] >= 25 or case == "negative"
        assert picture.axes[1].get_yscale() == ("log" if case == "percent" else "linear")
    if case == "resumed":
        assert picture.axes[-1].get_xlabel() == "training steps since step 5000"
        assert picture.axes[-1].get_xlim()[0] < 1.1
    assert printed(dataset)


def assert_axes_named_below(picture):
    for axes in picture.axes[:-1]:
        axes.set_xlabel(picture.axes[-1].get_xlabel())  # the rows share the axis of the last
    assert_axes_named(picture)


def test_long_curves_are_thinned():
    seen = watched()
    for step in range(1, 3 * POINTS):
        seen.log.call(step)
        seen.log.metric("train_loss", 1 / step)
    line = read(seen.dataset).figure().axes[0].lines[0]
    assert POINTS / 4 < len(line.get_xdata()) <= POINTS
    assert line.get_xdata()[-1] == 3 * POINTS - 1
    np.testing.assert_array_equal(line.get_ydata(), 1 / line.get_xdata())


def test_a_notebook_gets_the_figure(grown, sketch):
    page = read(grown.dataset)._repr_html_()
    held = base64.b64decode(re.search(r"base64,([^']+)", page)[1])
    assert held.startswith(b"\x89PNG")


# files


def test_files_are_written_by_their_suffix(grown, sketch, tmp_path, capsys):
    files = [tmp_path / f"run{suffix}" for suffix in (".nc", ".json", ".png", ".svg")]
    found = grown.report(*files)
    assert found.files == tuple(files)
    assert sorted(tmp_path.iterdir()) == sorted(files)
    for file in files[:2]:
        assert load(file).identical(grown.dataset)
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[3].read_text()
    out = capsys.readouterr().out
    assert len(re.findall("^written ", out, flags=re.M)) == 4


BAD_FILES = {
    "run.pdf": "a report is written as .nc, .json, .png, .svg, got 'run.pdf'",
    "none/run.png": "lies in no existing folder",
    "none/run.nc": "lies in no existing folder",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_ends_no_training_and_keeps_no_other_file_from_it(grown, name, tmp_path, capsys):
    seen, good = fresh(steps=20), tmp_path / "good.json"
    found = seen.report(tmp_path / name, good)
    assert found.files == (good,)
    assert good.exists()
    assert any(BAD_FILES[name] in f.sentence and f.kind == "report" for f in seen.failures)
    assert "failure" in capsys.readouterr().out
    with pytest.raises(ValueError, match=re.escape(BAD_FILES[name])):
        report(seen.dataset, tmp_path / name)
    with pytest.raises(ValueError, match=re.escape(BAD_FILES[name])):
        fresh(steps=5, raising=True).report(tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["good.json"]


def test_a_failed_drawing_leaves_the_old_file(grown, tmp_path, monkeypatch):
    file = tmp_path / "run.png"
    file.write_text("old")
    monkeypatch.setattr("penchant.plotting.watch.draw_watch", lambda *args: 1 / 0)
    seen = fresh(steps=5)
    seen.report(file)
    assert "ZeroDivisionError" in seen.failures[-1].sentence
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


# trackers: what they are handed is what the record holds


def expected(dataset):
    """{(name, step): value} of a record by another route: pandas."""
    found = {}
    for step, dims, prefix in (
        ("step", ("time",), "watch/"),
        ("call_step", ("call",), "watch/metrics/"),
        ("glance_step", ("glance",), "watch/"),
    ):
        for name in [n for n, v in dataset.data_vars.items() if v.dims == dims]:
            table = dataset[name].to_dataframe().dropna()
            for row in table.itertuples():
                found[f"{prefix}{name}", getattr(row, step)] = getattr(row, name)
    for name in ("layer_l1", "layer_l2", "layer_nuclear", "layer_moved", "layer_distance"):
        for row in dataset[name].to_dataframe().dropna().reset_index().itertuples():
            found[f"watch/{name}/{row.layer}", row.step] = getattr(row, name)
    return found


def modules(monkeypatch, **fakes):
    """Puts fake modules, with dots written as two underscores, where an import finds them."""
    for name, attributes in fakes.items():
        module = None if attributes is None else types.SimpleNamespace(**attributes)
        monkeypatch.setitem(sys.modules, name.replace("__", "."), module)


def test_curves_are_the_record(grown):
    found = {
        (c.name, s): v
        for c in curves(grown.dataset)
        for s, v in zip(c.steps, c.values, strict=True)
    }
    assert found == expected(grown.dataset)
    assert len(found) > 1000
    assert ("watch/layer_l2/inner", 1.0) in found
    assert not any(name.startswith("watch/layer_nuclear") for name, _ in found)  # vectors have none


class Many(list):
    """A repeated field of a protocol buffer."""

    def add(self, **values):
        self.append(types.SimpleNamespace(**values))
        return self[-1]


def fake_event(wall_time, step):
    class Value(types.SimpleNamespace):
        def __init__(self, **values):
            shape = types.SimpleNamespace(dim=Many())
            super().__init__(
                metadata=types.SimpleNamespace(plugin_data=types.SimpleNamespace()),
                tensor=types.SimpleNamespace(tensor_shape=shape, string_val=[]),
                **values,
            )

    class Values(Many):
        def add(self, **values):
            self.append(Value(**values))
            return self[-1]

    return types.SimpleNamespace(step=step, summary=types.SimpleNamespace(value=Values()))


def test_tensorboard(grown, tmp_path, monkeypatch, capsys):
    written = {}

    class File:
        def __init__(self, folder):
            self.events = written.setdefault(folder, [])

        def add_event(self, event):
            self.events.append(event)

        def flush(self):
            pass

        def close(self):
            self.events.append("closed")

    modules(
        monkeypatch,
        tensorboard__summary__writer__event_file_writer={"EventFileWriter": File},
        tensorboard__compat__proto__event_pb2={"Event": fake_event},
    )
    folder = tmp_path / "runs" / "one"
    found = grown.report(tmp_path / "run.nc", folder, to="tensorboard")
    assert found.files == (tmp_path / "run.nc", folder)
    assert not grown.failures
    ((place, (*events, last)),) = written.items()
    assert (place, last) == (str(folder), "closed")
    values = [(event.step, value) for event in events for value in event.summary.value]
    scalars = {(v.tag, s): v.simple_value for s, v in values if hasattr(v, "simple_value")}
    record = expected(grown.dataset)
    assert scalars == {key: float(np.float32(value)) for key, value in record.items()}
    texts = {v.tag: v.tensor.string_val[0].decode() for _, v in values if v.tensor.string_val}
    assert texts == {f"watch/{k}/text_summary": t for k, t in findings(grown.dataset).items()}


def test_tensorboardx_serves_where_tensorboard_is_missing(grown, tmp_path, monkeypatch):
    called = []

    class Writer:
        def __init__(self, folder):
            called.append(folder)

        def __getattr__(self, name):
            return lambda *args: called.append((name, *args))

    modules(
        monkeypatch,
        tensorboard__summary__writer__event_file_writer=None,
        tensorboardX={"SummaryWriter": Writer},
    )
    deliver(grown.dataset, [tmp_path], "tensorboard")
    scalars = {(n, s): v for kind, n, v, s in (c for c in called if c[0] == "add_scalar")}
    assert len(scalars) == len(expected(grown.dataset))
    assert called[0] == str(tmp_path)
    assert called[-1] == ("close",)


def test_wandb(grown, monkeypatch):
    logged, defined = [], []
    run = types.SimpleNamespace(
        log=logged.append,
        summary={},
        define_metric=lambda name, **more: defined.append((name, more)),
    )
    settings = types.SimpleNamespace(root_dir="here", mode="offline")
    theirs = types.SimpleNamespace(
        project="p", entity="e", group="", id="abc", name="fox", settings=settings
    )
    opened = []
    init = lambda **options: opened.append(options) or run  # noqa: E731
    modules(monkeypatch, wandb={"run": theirs, "init": init})
    deliver(grown.dataset, [], "wandb")
    assert len(opened) == 1
    assert (opened[0]["id"], opened[0]["group"], opened[0]["reinit"]) == (
        "abc-watch",
        "abc",
        "create_new",
    )
    found = {
        (name, row["watch/step"]): value
        for row in logged
        for name, value in row.items()
        if name != "watch/step"
    }
    assert found == expected(grown.dataset)
    steps = [row["watch/step"] for row in logged]
    assert steps == sorted(set(steps))
    assert ("watch/*", {"step_metric": "watch/step"}) in defined
    assert run.summary["watch/regime"].startswith("rich: ")


def test_mlflow(grown, monkeypatch):
    logged, tags = [], {}

    class Client:
        def log_batch(self, run_id, metrics):
            assert run_id == "one"
            assert len(metrics) <= 1000
            logged.extend(metrics)

    active = types.SimpleNamespace(info=types.SimpleNamespace(run_id="one"))
    modules(
        monkeypatch,
        mlflow={"active_run": lambda: active, "MlflowClient": Client, "set_tag": tags.__setitem__},
        mlflow__entities={"Metric": lambda name, value, time, step: (name, step, value)},
    )
    deliver(grown.dataset, [], "mlflow")
    assert {(name, step): value for name, step, value in logged} == expected(grown.dataset)
    assert all(isinstance(step, int) for _, step, _ in logged)
    assert tags["watch.verdict"].startswith("grok: ")


MISSING = {
    "tensorboard": ("tensorboard__summary__writer__event_file_writer", "tensorboardX"),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_tracker_is_named_with_its_extra(grown, name, tmp_path, monkeypatch, capsys):
    modules(monkeypatch, **dict.fromkeys(MISSING[name]))
    folders = [tmp_path] if name == "tensorboard" else []
    sentence = f"watch: to='{name}' needs the package {name}: pip install 'penchant[{name}]'"
    with pytest.raises(ImportError, match=re.escape(sentence)):
        deliver(grown.dataset, folders, name)
    seen = fresh(steps=5)
    seen.report(*folders, to=name)  # and a training loop goes on
    assert seen.failures[-1].sentence == sentence
    assert "failure" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("to", "folders", "rule"),
    [
        ("tensorbord", [], "unknown tracker 'tensorbord'; did you mean tensorboard"),
        ("tensorboard", [], "needs one log folder, got 0"),
        ("tensorboard", ["a", "b"], "needs one log folder, got 2"),
        ("wandb", ["a"], "a is not a file to write"),
        ("wandb", [], "no run of W&B is open"),
        ("mlflow", [], "no run of MLflow is active"),
    ],
)
def test_trackers_complain_in_a_sentence(grown, monkeypatch, to, folders, rule):
    modules(monkeypatch, wandb={"run": None}, mlflow={"active_run": lambda: None})
    with pytest.raises(ValueError, match=rule):
        deliver(grown.dataset, folders, to)


def test_a_real_event_file_reads_back(grown, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    deliver(grown.dataset, [tmp_path], "tensorboard")
    events = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0})
    events.Reload()
    tags = events.Tags()["scalars"]
    found = {(tag, e.step): e.value for tag in tags for e in events.Scalars(tag)}
    record = expected(grown.dataset)
    assert found == {key: float(np.float32(value)) for key, value in record.items()}


# the command


@pytest.fixture
def sketch(monkeypatch):
    """A quick drawing in place of the real one, for tests of what is done with it."""
    from matplotlib.figure import Figure

    monkeypatch.setattr("penchant.plotting.watch.draw_watch", lambda *args: Figure(figsize=(1, 1)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def penchant_watch(*words):
    """(exit code, everything printed) of `penchant watch`."""
    result = CliRunner().invoke(app, ["watch", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["run.nc", "run.json"])
def test_the_command_opens_a_record(grown, folder, sketch, name, capsys):
    grown.look()  # as a report does
    grown.save(name)
    code, out = penchant_watch(name)
    assert code == 0
    grown.report()
    table = capsys.readouterr().out
    assert out.startswith(table.rstrip())
    assert out.splitlines()[-1] == "figure: run.png"
    assert sorted(path.name for path in Path().iterdir()) == sorted([name, "run.png"])
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_goes_where_it_is_wanted(grown, folder, sketch):
    grown.save("run.nc")
    assert penchant_watch("run.nc", "--no-figure")[0] == 0
    assert [path.name for path in Path().iterdir()] == ["run.nc"]
    code, out = penchant_watch("run.nc", "--figure", "talk.svg")
    assert (code, out.splitlines()[-1]) == (0, "figure: talk.svg")
    assert sorted(path.name for path in Path().iterdir()) == ["run.nc", "talk.svg"]


def bad_records(grown):
    """Files that are no whole record, with what is said of them."""
    for name in ("run.nc", "run.json"):
        whole = grown.save(name).read_bytes()
        Path(name).unlink()
        Path(f"cut-{name}").write_bytes(whole[: len(whole) // 2])
    lists = json.loads(whole)
    lists["variables"]["step"]["data"][0] = 0.25
    Path("changed.json").write_text(json.dumps(lists))
    del lists["variables"]["kernel_distance"]
    lists["checksum"] = json_checksum(lists)
    Path("part.json").write_text(json.dumps(lists))
    Path("other.json").write_text("[1, 2]")
    empty = {"attrs": {}, "coords": [], "variables": {}}
    Path("empty.json").write_text(json.dumps(empty | {"checksum": json_checksum(empty)}))
    Path("deep.json").write_text("[" * 100_000)
    lists["variables"]["step"] |= {"dtype": "O"}
    Path("objects.json").write_text(json.dumps(lists))
    Path("text.nc").write_text("step loss")
    Path("folder.nc").mkdir()
    Path("folder.json").mkdir()
    penchant.save(grown.dataset.assign_attrs(kind="path"), "foreign.nc")
    penchant.save(grown.dataset.assign_attrs(weight_decay="much"), "words.nc")
    return {
        "missing.nc": "there is no file missing.nc",
        "missing.json": "there is no file missing.json",
        "cut-run.nc": "cut short or damaged",
        "cut-run.json": "is not a record in JSON",
        "part.json": "part.json is an incomplete record (without kernel_distance)",
        "changed.json": "changed.json was changed or damaged: its checksum is wrong",
        "words.nc": "its weight_decay is impossible",
        "other.json": "is not a record in JSON",
        "empty.json": "is not the record of a watch",
        "deep.json": "is not a record in JSON",
        "objects.json": "a variable of type 'O'",
        "text.nc": "is no netCDF",
        "folder.nc": "is a folder",
        "folder.json": "is a folder",
        "foreign.nc": "is not the record of a watch",
    }


def test_bad_records_are_refused_in_a_line(grown, folder):
    for name, sentence in bad_records(grown).items():
        before = sorted(Path().rglob("*"))
        code, out = penchant_watch(name)
        assert (code, len(out.splitlines())) == (2, 1), (name, out)
        assert sentence in out, (name, out)
        assert sorted(Path().rglob("*")) == before


def test_wrong_usage_of_the_command(grown, folder, sketch):
    grown.save("run.nc")
    for words, sentence in (
        (["--figure", "a.png", "--no-figure"], "not both"),
        (["--figure", "a.pdf"], "written as .png or .svg, got 'a.pdf'"),
        (["--figure", "none/a.png"], "no existing folder"),
    ):
        code, out = penchant_watch("run.nc", *words)
        assert (code, len(out.splitlines())) == (2, 1), out
        assert sentence in out
    assert penchant_watch()[0] == 2
    assert [path.name for path in Path().iterdir()] == ["run.nc"]


def test_the_help_teaches():
    code, out = penchant_watch("--help")
    assert code == 0
    assert "penchant watch run.nc" in out
    assert "watch = penchant.watch(model, inputs" in out
    assert "\b" not in out
