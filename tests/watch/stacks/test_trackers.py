"""TensorBoard, W&B and MLflow get each look once, with the libraries themselves and no network."""

import collections
import json
import struct
import sys

import numpy as np
import pytest

import penchant

LOOKS = [0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 18, 20]


def trained(to=None, steps=20, user=lambda step: None, report=None, reports=()):
    """A diagonal net that is watched.

    `user` logs on their own at every step, and `report(watch)` is called after the steps `reports`.
    """
    w, x = np.ones(3), np.eye(3)
    watch = penchant.watch(
        lambda w, x: x @ w**2, x, parameters=w, to=to, budget=None, raise_errors=True
    )
    for step in range(1, steps + 1):
        w = w - 0.02 * np.array([1.0, -1.0, 2.0])
        watch(step, w, train_loss=1 / step)
        user(step)
        if step in reports:
            report(watch)
    return watch


def expected(watch):
    found = watch.dataset
    return dict(zip(found.step.values.tolist(), found.kernel_distance.values, strict=True))


# TensorBoard


def events(folder):
    module = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs tensorboard: pip install 'penchant[stacks]'",
    )
    held = module.EventAccumulator(str(folder), {"scalars": 0, "tensors": 0})
    return held.Reload()


def test_tensorboard_has_every_look_once_after_two_reports(tmp_path, capsys):
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install 'penchant[stacks]'")
    report = lambda watch: watch.report(tmp_path, to="tensorboard")  # noqa: E731
    watch = trained(report=report, reports=(10, 20))
    held = events(tmp_path)
    assert [e.step for e in held.Scalars("watch/kernel_distance")] == LOOKS
    assert [e.step for e in held.Scalars("watch/metrics/train_loss")] == list(range(1, 21))
    assert not watch.failures


def test_tensorboard_has_every_look_once_when_it_happens(tmp_path, capsys):
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install 'penchant[stacks]'")
    seen = []

    def look_in(step):
        if step in (5, 10):
            seen.append(max(e.step for e in events(tmp_path).Scalars("watch/kernel_distance")))

    watch = trained(("tensorboard", str(tmp_path)), user=look_in)
    assert seen == [5, 10]
    watch.report(tmp_path, to="tensorboard")
    watch.report(tmp_path, to="tensorboard")
    held = events(tmp_path)
    found = [(e.step, e.value) for e in held.Scalars("watch/kernel_distance")]
    assert [step for step, _ in found] == LOOKS
    truth = expected(watch)
    assert [value for _, value in found] == pytest.approx([truth[s] for s in LOOKS], rel=1e-6)
    losses = [(e.step, e.value) for e in held.Scalars("watch/metrics/train_loss")]
    assert losses == [(s, pytest.approx(1 / s)) for s in range(1, 21)]


# W&B


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    found = pytest.importorskip("wandb", reason="needs wandb: pip install 'penchant[stacks]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    yield found
    found.teardown()


BLOCK, HEADER = 2**15, 7  # of LevelDB's log format, in which W&B writes


def records(data):
    """The records of a .wandb file: pieces with a checksum, a length and a kind, in blocks."""
    place, held = HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:  # no piece begins so near to the end of a block
            place += BLOCK - place % BLOCK
            continue
        size, kind = struct.unpack("<HB", data[place + 4 : place + HEADER])
        held += data[place + HEADER : place + HEADER + size]
        place += HEADER + size
        if kind in (1, 4):  # whole, or the last piece
            yield held
            held = b""


def histories(folder):
    """The rows of every offline run by its id: (step of the run, numbers)."""
    from wandb.proto import wandb_internal_pb2

    found = {}
    for file in folder.rglob("*.wandb"):
        rows = found[file.stem.removeprefix("run-")] = []
        for data in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {i.key or ".".join(i.nested_key): i for i in record.history.item}
                row = {name: json.loads(item.value_json) for name, item in items.items()}
                rows.append((row.pop("_step", record.history.step.num), row))
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library itself
@pytest.mark.parametrize("to", ["wandb", None], ids=["live", "by reports alone"])
def test_wandb_has_every_look_once_and_the_steps_of_the_user_are_theirs(
    to, wandb, tmp_path, capsys
):
    run = wandb.init(project="p", id="mine")
    steps = []

    def log(step):
        run.log({"loss": 1 / step}, step=step)
        steps.append(run.step)

    report = lambda watch: watch.report(to="wandb")  # noqa: E731
    watch = trained(to, user=log, report=report, reports=(10, 20))
    assert steps == list(range(1, 21))  # a report at 10 does not move them
    watch.trackers["wandb"].run.finish()
    run.finish()
    wandb.teardown()  # the process of W&B has written everything when it ends
    found = histories(tmp_path)
    assert set(found) == {"mine", "mine-watch"}
    mine = [(step, row["loss"]) for step, row in found["mine"] if "loss" in row]
    assert mine == [(step, pytest.approx(1 / step)) for step in range(1, 21)]
    assert not [name for _, row in found["mine"] for name in row if name.startswith("watch/")]
    rows = [row for _, row in found["mine-watch"] if "watch/kernel_distance" in row]
    assert [row["watch/step"] for row in rows] == LOOKS
    truth = expected(watch)
    assert [r["watch/kernel_distance"] for r in rows] == pytest.approx([truth[s] for s in LOOKS])
    losses = [
        row["watch/step"] for _, row in found["mine-watch"] if "watch/metrics/train_loss" in row
    ]
    assert losses == list(range(1, 21))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wandb_without_a_run_is_a_failure_and_training_goes_on(wandb):
    w, x = np.ones(3), np.eye(3)
    watch = penchant.watch(lambda w, x: x @ w**2, x, parameters=w, to="wandb", budget=None)
    watch(1, 2 * w)
    (failure,) = watch.failures
    assert "no run of W&B is open; call wandb.init(...)" in failure.sentence
    assert watch.dataset.sizes["time"] == 2


# MLflow


@pytest.mark.filterwarnings("ignore")  # of the library and its database
@pytest.mark.parametrize("to", ["mlflow", None], ids=["live", "by reports alone"])
def test_mlflow_has_every_look_once(to, tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow: pip install 'penchant[stacks]'")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    client, seen = mlflow.MlflowClient(), []
    with mlflow.start_run() as run:
        key = run.info.run_id

        def log(step):
            mlflow.log_metric("loss", 1 / step, step=step)
            if step == 5:
                seen.extend(client.get_metric_history(key, "watch/kernel_distance"))

        report = lambda watch: watch.report(to="mlflow")  # noqa: E731
        watch = trained(to, user=log, report=report, reports=(10, 20))
    assert [m.step for m in seen] == (LOOKS[:6] if to else [])
    found = [(m.step, m.value) for m in client.get_metric_history(key, "watch/kernel_distance")]
    assert [step for step, _ in found] == LOOKS
    truth = expected(watch)
    assert [value for _, value in found] == pytest.approx([truth[s] for s in LOOKS])
    theirs = collections.Counter(m.step for m in client.get_metric_history(key, "loss"))
    assert theirs == collections.Counter(range(1, 21))
    assert client.get_run(key).data.tags["watch.regime"].startswith(watch.regime.kind)


def test_a_resumed_run_hands_over_what_is_new(tmp_path):
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install 'penchant[stacks]'")
    x, to = np.eye(3), ("tensorboard", str(tmp_path))
    apply = lambda w, x: x @ w**2  # noqa: E731
    given = {"to": to, "budget": None, "raise_errors": True}
    first = penchant.watch(apply, x, parameters=np.ones(3), **given)
    for step in (1, 2):
        first(step, np.array([1.0, 1.0, 1 + step]))
    state = first.state_dict()
    second = penchant.watch(apply, x, parameters=np.array([1.0, 1.0, 3.0]), step=2, **given)
    second.load_state_dict(state)
    second(3, np.array([1.0, 1.0, 4.0]))
    found = [e.step for e in events(tmp_path).Scalars("watch/kernel_distance")]
    assert found == [0, 1, 2, 3]


# trackio


class Rows:
    """In the place of trackio, whose `log` starts a server: one open run, or none."""

    def __init__(self):
        self.rows, self.open = [], True

    def log(self, metrics, step=None):
        if not self.open:
            raise RuntimeError("Call trackio.init() before trackio.log().")
        self.rows.append((step, metrics))


@pytest.fixture
def trackio(monkeypatch):
    held = Rows()
    monkeypatch.setitem(sys.modules, "trackio", held)
    return held


@pytest.mark.parametrize("to", ["trackio", None], ids=["live", "by reports alone"])
def test_trackio_has_every_look_once_at_its_step(to, trackio, capsys):
    watch = trained(to, report=lambda watch: watch.report(to="trackio"), reports=(10, 20))
    looks = [(step, row) for step, row in trackio.rows if "watch/kernel_distance" in row]
    truth = expected(watch)
    assert [step for step, _ in looks] == LOOKS
    assert [r["watch/kernel_distance"] for _, r in looks] == pytest.approx(list(truth.values()))
    losses = [step for step, row in trackio.rows if "watch/metrics/train_loss" in row]
    assert losses == list(range(1, 21))
    assert any("kernel" in str(row.get("watch/regime", "")) for _, row in trackio.rows)


def test_trackio_without_a_run_is_a_failure_and_training_goes_on(trackio):
    trackio.open = False
    w, x = np.ones(3), np.eye(3)
    watch = penchant.watch(lambda w, x: x @ w**2, x, parameters=w, to="trackio", budget=None)
    watch(1, 2 * w)
    (failure,) = watch.failures
    assert "no run of trackio is open; call trackio.init(...)" in failure.sentence
    assert watch.dataset.sizes["time"] == 2
