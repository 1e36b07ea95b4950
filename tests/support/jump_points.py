"""The points on which the law of the jump was fitted, and the fit.

`python tests/support/jump_points.py POINTS RUNS` trains all runs again (some minutes of one
processor), writes the points and the curves of EXAMPLES, and prints the constants of
penchant.forecasts.jump. A point is a run asked at a step between memorization and the jump, as the
watch sees it. The runs are the DEVELOPMENT settings of
the league of forecasts with seed 1, and MORE, drawn by hand to cover what these leave out. No run
of the league itself was used.
"""

from __future__ import annotations

import sys

import numpy as np
import xarray

from penchant.forecasts.jump import FALLS, LATE, LONGEST, STILL, Losses, Progress
from penchant.watch import prediction, progress

TIMES = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0)  # of the memorization
APART = 1.25  # and all steps so far apart
PARTS = ("z", "accuracy", "norm", "turn", "memorized", "test", "highest", "slope")
TRUTH = ("run", "family", "asked", "now", "rate", "jump_z", "jump")
MLP, QUADRATIC = "dense, biased", "quadratic"
NORMAL, PLAIN = "transformer", "transformer, not normalized"
# net, modulus (0: digits), share or images, optimizer, learning rate, decay, steps, other, seed
MORE = [
    (QUADRATIC, 29, 0.65, "AdamW", 0.003, 1.0, 2500, {"hidden": 96}, 101),
    (MLP, 23, 0.8, "AdamW", 0.002, 1.5, 5000, {}, 102),
    (PLAIN, 23, 0.7, "AdamW", 0.002, 1.0, 2500, {}, 103),
    (MLP, 0, 150, "AdamW", 0.002, 0.5, 5000, {"scale": 12.0}, 104),
    (QUADRATIC, 19, 0.75, "SGD", 0.1, 0.004, 12000, {"loss": "mse", "scale": 0.5}, 105),
    (QUADRATIC, 37, 0.6, "AdamW", 0.005, 0.4, 2500, {"hidden": 64}, 106),
    (MLP, 19, 0.8, "momentum", 0.05, 0.003, 10000, {"scale": 2.0}, 107),
    (NORMAL, 29, 0.7, "AdamW", 0.002, 0.7, 2500, {}, 108),
    (QUADRATIC, 23, 0.8, "momentum", 0.02, 0.004, 8000, {"scale": 0.7}, 109),
    (MLP, 29, 0.75, "AdamW", 0.004, 0.6, 5000, {"hidden": 64}, 110),
    (MLP, 0, 80, "AdamW", 0.001, 0.6, 8000, {"scale": 30.0}, 111),
    (QUADRATIC, 31, 0.75, "AdamW", 0.002, 2.0, 2500, {"scale": 2.0, "loss": "mse"}, 112),
    (MLP, 0, 300, "momentum", 0.01, 0.003, 8000, {"scale": 8.0}, 113),
    (QUADRATIC, 41, 0.5, "AdamW", 0.004, 1.0, 2500, {"hidden": 160}, 114),
    (MLP, 29, 0.8, "SGD", 0.3, 0.002, 12000, {"scale": 2.5}, 115),
    (PLAIN, 31, 0.8, "AdamW", 0.001, 0.7, 4000, {"scale": 0.7}, 116),
    (QUADRATIC, 23, 0.55, "AdamW", 0.01, 0.1, 4000, {"scale": 0.5}, 117),
    (MLP, 37, 0.6, "AdamW", 0.003, 1.0, 5000, {"scale": 1.5}, 118),
    (NORMAL, 37, 0.6, "AdamW", 0.002, 1.0, 2500, {"scale": 1.5}, 119),
    (QUADRATIC, 29, 0.75, "SGD", 0.2, 0.002, 15000, {"scale": 0.8}, 120),
    (QUADRATIC, 29, 0.7, "AdamW 0.999", 0.004, 0.6, 2500, {"schedule": "warm-up, cosine"}, 121),
    (MLP, 23, 0.7, "AdamW 0.999", 0.003, 1.5, 5000, {"schedule": "warm-up"}, 122),
    (QUADRATIC, 23, 0.35, "AdamW", 0.004, 0.8, 3000, {}, 123),
    (MLP, 31, 0.4, "AdamW", 0.003, 1.0, 4000, {}, 124),
]

KEPT = ("norm", "turn", "train_accuracy", "test_accuracy", "train_loss", "test_loss")
EXAMPLES = {  # of DEVELOPMENT: net, modulus (0: digits), share or images, optimizer, decay, loss
    "transformer, LayerNorm": (NORMAL, 31, 0.7, "AdamW", 1.0, "xent"),
    "transformer": (PLAIN, 31, 0.7, "AdamW", 1.0, "xent"),
    "ReLU net, AdamW": (MLP, 23, 0.7, "AdamW", 1.0, "xent"),
    "ReLU net, SGD": (MLP, 23, 0.75, "SGD", 0.002, "xent"),
    "quadratic, AdamW": (QUADRATIC, 23, 0.6, "AdamW", 0.5, "xent"),
    "quadratic, momentum": (QUADRATIC, 31, 0.6, "momentum", 0.002, "xent"),
    "quadratic, squared loss": (QUADRATIC, 23, 0.7, "momentum", 0.003, "mse"),
    "digits": (MLP, 0, 200, "AdamW", 0.3, "xent"),
    "ReLU net, schedule": (MLP, 23, 0.75, "AdamW", 1.0, "xent"),
    "no decay": (MLP, 23, 0.75, "momentum", 0.0, "xent"),
    "few pairs": (MLP, 23, 0.25, "AdamW", 1.0, "xent"),
    "too much decay": (MLP, 23, 0.7, "AdamW", 30.0, "xent"),
    "at once": (MLP, 0, 400, "AdamW", 0.01, "xent"),
}


def as_dataset(curves, rate, decay, until=np.inf):
    """Recorded curves as the record of a watch that was cut at a step."""
    seen = curves["step"] <= until
    t = curves["step"][seen]
    found = {
        name: ("call", curves[name][seen])
        for name in ("train_accuracy", "test_accuracy", "train_loss", "test_loss")
        if name in curves
    }
    for name, values in (("norm", curves["norm"]), ("turn", curves["turn"]), ("rate", rate)):
        found[f"glance_{name}"] = ("glance", np.asarray(values)[seen])
    steps = {"call_step": ("call", t), "glance_step": ("glance", t)}
    return xarray.Dataset(found, steps, {"weight_decay": decay, "start_step": 0.0, "level": None})


def truth(t, train, test):
    """Memorization, and half of the way from there to the end; NaN where there is no such thing."""
    below = np.flatnonzero(train < 0.99)
    first = int(below[-1]) + 1 if len(below) else 0
    if first == len(t):
        return np.nan, np.nan
    last = np.median(test[t >= 0.95 * t[-1]])
    later = np.flatnonzero((test >= (test[first] + last) / 2) & (t > t[first]))
    grokked = last - test[first] > 0.2
    return t[first], t[later[0]] if grokked else np.nan


def points_of(curves, rate, decay, run, family):
    """The rows of one run, TRUTH and PARTS."""
    t = curves["step"]
    memorized, jump = truth(t, curves["train_accuracy"], curves["test_accuracy"])
    if not (decay > 0 and np.isfinite(jump)):
        return []
    z = np.append(0.0, np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(t)))
    many = memorized * APART ** np.arange(1, 100)
    rows = []
    for now in sorted({*(memorized * np.array(TIMES)), *many}):
        if now >= jump:
            break
        seen = numbers(as_dataset(curves, rate, decay, now))
        if seen is None:
            continue
        losses = seen.losses or Losses(*[np.nan] * 4)
        asked = now / memorized
        at_now, at_jump = np.interp(now, t, rate), np.interp(jump, t, z)
        rows.append([run, family, asked, now, at_now, at_jump, jump, *seen[:4], *losses])
    return rows


def numbers(dataset):
    """What the law sees of a record after memorization."""
    known = prediction.accuracies(dataset)
    if known is None or known.rise is None:
        return None
    losses = prediction._losses(dataset, known, known.rise.memorized)
    return progress.progress(progress.decay(dataset), known.rise, losses)


def read(file):
    """The points as columns by name."""
    with np.load(file) as stored:
        return dict(zip((*TRUTH, *PARTS), stored["points"].astype(float).T, strict=True))


def seen_at(points, i):
    """The point i as the law takes it."""
    z, accuracy, norm, turn, *losses = (float(points[name][i]) for name in PARTS)
    known = np.isfinite(losses).all()
    return Progress(z, accuracy, norm, turn, Losses(*losses) if known else None)


def signs(points, plain):
    """The regressors of the two laws, written a second time."""
    p, one = points, np.ones(len(points["z"]))
    if plain:
        turn = np.log(np.tan(np.radians(np.clip(p["turn"], 0.1, 89)))) - np.log(p["z"])
        return np.stack([one, p["accuracy"], np.minimum(np.log(p["norm"]) + p["z"], 2), turn], 1)
    margin = np.minimum(np.log(np.log1p(1 / p["memorized"])), 0.7)
    test = np.minimum(np.log(p["test"]), np.log(8))
    slope = np.clip(p["slope"], -2, 0)
    return np.stack([one, margin, test, np.minimum(p["z"], 3), slope], 1)


def fit(x, y, run):
    """Coefficients by least squares where residuals are small, by absolute errors beyond 0.15.

    Every run has the same weight.
    """
    share = 1 / np.bincount(run)[run]
    weight = share
    for _ in range(50):
        left = x.T * weight
        found = np.linalg.solve(left @ x + 1e-3 * np.eye(x.shape[1]), left @ y)
        weight = share * 0.15 / np.maximum(np.abs(y - x @ found), 0.15)
    return found


def left_out(x, y, run, group):
    """Predictions of log z, each made without the points of its own group."""
    found = np.empty(len(y))
    for one in np.unique(group):
        out = group == one
        found[out] = x[out] @ fit(x[~out], y[~out], run[~out])
    return found


def errors(points, log_z):
    """Relative errors of the step, where log_z is what a law says."""
    z = np.maximum(np.exp(log_z), 1.08 * points["z"])
    step = points["now"] + (z - points["z"]) / points["rate"]
    return np.abs(step / points["jump"] - 1)


def read_runs(file):
    """The curves of EXAMPLES by name, with `rate` and `decay`."""
    found = {}
    with np.load(file) as stored:
        for key in stored.files:
            name, part = key.rsplit("/", 1)
            found.setdefault(name, {})[part] = stored[key].astype(float)
    return found


def main(file, examples):
    from penchant_papers.probe.grokking_runs import DEVELOPMENT
    from penchant_papers.probe.trajectories import ProbeRun, record

    runs = [(run, 1) for run in DEVELOPMENT]
    runs += [(ProbeRun(*given[:7], **given[7]), given[8]) for given in MORE]
    rows, families, shown = [], {}, {}
    names = {of: name for name, of in EXAMPLES.items()}
    for number, (run, seed) in enumerate(runs):
        curves = record(run, seed)
        momentum = run.how.memory if run.how.coupled else 0.0
        rate = run.rates(curves["step"]) * run.weight_decay / (1 - momentum)
        of = (run.net, run.p, run.share, run.optimizer, run.weight_decay, run.loss)
        if seed == 1 and of in names:
            shown |= thinned(names[of], curves, rate, run.weight_decay)
        name = run.net.split(",")[0] + (" on digits" if not run.p else "")
        family = families.setdefault(name, len(families))
        rows += points_of(curves, rate, run.weight_decay, number, family)
    np.savez_compressed(file, points=np.array(rows, np.float32))
    np.savez_compressed(examples, **shown)
    report(read(file))


def thinned(name, curves, rate, decay):
    """Every second record of one run, in single precision."""
    parts = {part: curves[part] for part in ("step", *KEPT)} | {"rate": rate}
    found = {f"{name}/{part}": np.float32(values[::2]) for part, values in parts.items()}
    return found | {f"{name}/decay": np.float32(decay)}


def report(points):
    """Prints the constants, the errors of what was left out, and the quantiles of residuals."""
    for plain in (False, True):
        use = np.full(len(points["z"]), True) if plain else np.isfinite(points["memorized"])
        p = {name: values[use] for name, values in points.items()}
        x, y = signs(p, plain), np.log(p["jump_z"])
        run = np.unique(p["run"], return_inverse=True)[1]
        print(f"{run.max() + 1} runs, {len(y)} points:", np.round(fit(x, y, run), 3))
        for name in ("run", "family"):
            said = left_out(x, y, run, p[name])
            wrong = errors(p, said)
            shown = {time: wrong[np.isclose(p["asked"], time)].mean() for time in TIMES}
            print(name, {time: round(float(value), 3) for time, value in shown.items()})
            share = p["z"] / np.exp(said)
            for low, high in ((0, 0.45), (0.45, LATE), (LATE, LONGEST)):
                part = (share >= low) & (share < high)
                print("  share", low, high, np.round(np.quantile((y - said)[part], [0.1, 0.9]), 2))
            if not plain:
                for since, fallen in FALLS:
                    late = (p["test"] > fallen * p["highest"]) & (p["slope"] > -STILL)
                    print("  late after", since, len(set(run[late & (share > since)])), "runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
