"""The bank of labelled curves on which measures.grokking is scored; no constant was tuned on it.

    python tests/support/grokking_bank.py tests/measures/grokking_bank.npz sheet.png

trains the runs (three minutes of one processor), writes all curves and draws them. Every label was
given by looking at this sheet, before the detector was run on the curves. The first run of the
detector agreed with 61 of 69 labels. It showed two faults: a spike in the last record was believed,
and slow rises were called jumps, which a new rule ended. The ten curves of the second draw were
made and labelled after that.
"""

from __future__ import annotations

import sys

import numpy as np

import grokking_runs as runs

LEVEL = {False: 0.95, True: 0.05}  # of accuracies, of errors


def invented(shape, draws=0, first=10.0, last=4.0, count=100, linear=False, seed=0, spikes=0):
    """Training that is solved near `first`, and test(t) = shape(log10 t) counted on `draws`."""
    t = np.linspace(0, 10**last, count) if linear else np.geomspace(1, 10**last, count)
    rng = np.random.default_rng(seed)
    train = -np.expm1(-((t / first) ** 2) * 3)
    test = np.clip(shape(np.log10(np.maximum(t, 1e-3))), 0, 1)
    if draws:
        train, test = (rng.binomial(draws, curve) / draws for curve in (train, test))
    test[rng.choice(count, spikes, replace=False)] *= 0.5
    return {"t": t, "train": train, "test": test}


def gompertz(middle, rate, low=0.1, high=1.0):
    """A rise that starts suddenly and ends slowly, in log time."""
    return lambda x: low + (high - low) * np.exp(-np.exp(-rate * (x - middle)))


def straight(begin, end, low=0.1, high=1.0):
    return lambda x: np.interp(x, [begin, end], [low, high])


def through(*points):
    """Straight lines between the points (log10 t, accuracy)."""
    return lambda x: np.interp(x, *np.transpose(points))


def plus(*shapes):
    return lambda x: sum(shape(x) for shape in shapes)


ERRORS = (runs.sparse, runs.recovery, runs.completion, runs.spectrum)  # the others: accuracies


def case(label, make, **given):
    """A curve, how it is made and what it looks like; `until` ends the record at a test value."""
    return make, given, label


BANK = {
    "addition mod 23, MLP": case("grok", runs.mlp),
    "addition mod 29, MLP": case("grok", runs.mlp, steps=10000, modulus=29, fraction=0.5, seed=1),
    "multiplication mod 23, MLP": case("grok", runs.mlp, steps=8000, operation="*", seed=2),
    "addition mod 23, MLP, small decay": case(
        "grok", runs.mlp, steps=20000, decay=0.3, fraction=0.5
    ),
    "addition mod 23, MLP, no decay": case("none", runs.mlp, steps=10000, decay=0.0),
    "addition mod 23, MLP, wrong labels": case(
        "grok", runs.mlp, steps=10000, wrong=0.05, decay=0.5
    ),
    "addition mod 23, MLP, wrong training labels": case(
        "grok", runs.mlp, steps=10000, wrong=0.05, everywhere=False, decay=0.5
    ),
    "permutations of 4, MLP": case("none", runs.group),
    "addition mod 23, quadratic": case("slow", runs.quadratic, steps=60000),
    "addition mod 23, quadratic, large start": case("grok", runs.quadratic, alpha=3.0, steps=60000),
    "addition mod 31, quadratic": case(
        "grok", runs.quadratic, modulus=31, fraction=0.7, seed=3, steps=10000
    ),
    "addition mod 23, quadratic, wrong labels": case(
        "slow", runs.quadratic, wrong=0.1, fraction=0.7
    ),
    "addition mod 23, quadratic, wrong training labels": case(
        "grok", runs.quadratic, wrong=0.05, fraction=0.7, everywhere=False
    ),
    "addition mod 23, quadratic, few pairs": case(
        "none", runs.quadratic, fraction=0.4, steps=10000
    ),
    "addition mod 31, quadratic, cut at 0.4": case(
        "in progress", runs.quadratic, modulus=31, fraction=0.7, seed=3, steps=10000, until=0.4
    ),
    "addition mod 31, quadratic, cut at 0.8": case(
        "in progress", runs.quadratic, modulus=31, fraction=0.7, seed=3, steps=10000, until=0.8
    ),
    "addition mod 29, MLP, cut at 0.7": case(
        "in progress", runs.mlp, steps=10000, modulus=29, fraction=0.5, seed=1, until=0.7
    ),
    "addition mod 29, MLP, cut at 0.85": case(
        "in progress", runs.mlp, steps=10000, modulus=29, fraction=0.5, seed=1, until=0.85
    ),
    "addition mod 23, MLP, cut at 0.8": case("in progress", runs.mlp, until=0.8),
    "digits": case("none", runs.digits, steps=5000),
    "digits, start x 8": case("slow", runs.digits, alpha=8.0),
    "digits, start x 20": case("grok", runs.digits, alpha=20.0),
    "digits, start x 30": case("grok", runs.digits, alpha=30.0, decay=0.1, steps=40000, rate=0.003),
    "digits, start x 30, cut at 0.75": case(
        "in progress", runs.digits, alpha=30.0, decay=0.1, steps=40000, rate=0.003, until=0.75
    ),
    "60 digits, start x 20": case("grok", runs.digits, alpha=20.0, decay=1.0, train=60, seed=3),
    "digits, wrong labels": case("none", runs.digits, wrong=0.4, width=400, steps=10000),
    "digits, start x 8, wrong labels": case("none", runs.digits, alpha=8.0, wrong=0.2, decay=1.0),
    "majority, norm 64": case("grok", runs.diagonal, norm=64.0, decay=0.01),
    "majority, norm 256": case("grok", runs.diagonal, norm=256.0, decay=0.01, seed=1),
    "majority, norm 0.5": case("grok", runs.diagonal, norm=0.5, decay=0.01),
    "majority, 30 samples": case(
        "grok", runs.diagonal, norm=64.0, decay=0.01, samples=30, seed=2, end=60.0
    ),
    "gap 5": case(
        "misgrok", runs.diagonal, norm=64.0, decay=0.01, gap=5.0, samples=32, dimension=300, seed=2
    ),
    "gap 3": case(
        "misgrok", runs.diagonal, norm=64.0, decay=0.01, gap=3.0, samples=32, dimension=500, seed=3
    ),
    "gap 8": case("none", runs.diagonal, norm=64.0, decay=0.01, gap=8.0, samples=32, dimension=500),
    "noisy sparse truth": case(
        "double descent", runs.sparse, alpha=10.0, decay=0.01, noise=0.3, seed=1
    ),
    "noisy sparse truth, less noise": case(
        "grok", runs.sparse, alpha=10.0, decay=0.01, noise=0.2, samples=40, seed=4
    ),
    "noisy sparse truth, more noise": case(
        "misgrok", runs.sparse, alpha=10.0, decay=0.001, noise=0.5
    ),
    "noisy sparse truth, another": case(
        "misgrok", runs.sparse, alpha=10.0, decay=0.01, noise=0.3, seed=5
    ),
    "noisy sparse truth, smaller start": case(
        "double descent", runs.sparse, alpha=3.0, decay=0.01, noise=0.3, samples=48, seed=8
    ),
    "recovery, l2, 40 samples": case(
        "mirage",
        runs.recovery,
        penalty="l2",
        beta=0.001,
        steps=100000,
        start=0.5,
        samples=40,
        seed=3,
    ),
    "completion, l2, more decay": case(
        "mirage", runs.completion, beta=0.0003, steps=300000, start=10.0, seed=1
    ),
    "recovery, l2": case("mirage", runs.recovery, penalty="l2", beta=0.0001, steps=1000000),
    "recovery, l2, 50 samples": case(
        "mirage",
        runs.recovery,
        penalty="l2",
        beta=0.001,
        steps=100000,
        start=0.3,
        samples=50,
        seed=1,
    ),
    "recovery, l1": case(
        "grok", runs.recovery, penalty="l1", beta=0.0001, steps=300000, samples=50
    ),
    "completion, l2": case("mirage", runs.completion, beta=0.0001, steps=300000, start=10.0),
    "features as 1/i": case("slow", runs.spectrum, power=1.0, steps=100000),
    "features as 1/i^1.5": case("none", runs.spectrum, power=1.5, steps=300000),
    "features as 1/i, noise": case("misgrok", runs.spectrum, power=1.0, steps=300000, noise=0.3),
    "logistic regression": case("none", runs.margin, steps=300000),
    # drawn and labelled after the rules were final, see the docstring
    "features as 1/i^0.8": case("none", runs.spectrum, power=0.8, steps=100000, samples=50, seed=3),
    "features as 1/i^1.2": case(
        "slow", runs.spectrum, power=1.2, steps=1000000, samples=45, seed=5
    ),
    "features as 1/i^1.2, 80 samples": case(
        "slow", runs.spectrum, power=1.2, steps=1000000, samples=80, dimension=120, seed=6
    ),
    "features as 1/i, 40 samples": case(
        "none", runs.spectrum, power=1.0, steps=1000000, samples=40, dimension=80, seed=7
    ),
    "addition mod 19, quadratic": case(
        "grok", runs.quadratic, modulus=19, fraction=0.7, seed=5, steps=20000
    ),
    "addition mod 19, quadratic, small decay": case(
        "misgrok", runs.quadratic, modulus=19, fraction=0.75, decay=0.05, seed=6, steps=30000
    ),
    "addition mod 19, MLP, small step": case(
        "grok", runs.mlp, modulus=19, fraction=0.65, rate=0.001, seed=7, steps=20000
    ),
    "digits, start x 12": case(
        "in progress", runs.digits, alpha=12.0, decay=0.05, steps=30000, seed=5
    ),
    "majority, 40 samples": case(
        "grok", runs.diagonal, norm=32.0, decay=0.01, samples=40, dimension=200, seed=6, end=40.0
    ),
    "majority, norm 8": case(
        "grok", runs.diagonal, norm=8.0, decay=1e-3, samples=60, dimension=200, seed=7
    ),
    "invented: a jump that ends slowly": case(
        "grok", invented, shape=gompertz(2.5, 8.0), draws=200
    ),
    "invented: the same on few samples": case(
        "grok", invented, shape=gompertz(2.5, 8.0), draws=40, seed=1
    ),
    "invented: a jump to 0.85": case(
        "grok", invented, shape=gompertz(2.5, 8.0, high=0.85), draws=300, seed=2
    ),
    "invented: a jump to 0.6": case(
        "grok", invented, shape=gompertz(2.0, 8.0, low=0.3, high=0.6), draws=300, seed=3
    ),
    "invented: two steps": case(
        "grok",
        invented,
        shape=plus(gompertz(2.0, 12.0, 0.1, 0.5), gompertz(4.5, 12.0, 0.0, 0.5)),
        last=6.0,
        draws=200,
        seed=4,
    ),
    "invented: a straight line": case(
        "slow", invented, shape=straight(1.5, 4.5), last=5.0, draws=200, seed=5
    ),
    "invented: a straight line to the end": case(
        "slow", invented, shape=straight(1.5, 5.5), last=5.0, draws=200, seed=6
    ),
    "invented: a jump that has begun": case(
        "in progress", invented, shape=gompertz(4.0, 5.0), draws=200, seed=7
    ),
    "invented: a jump nearly done": case(
        "in progress", invented, shape=gompertz(3.75, 6.0), draws=500, seed=8
    ),
    "invented: a jump, linear times": case(
        "grok",
        invented,
        shape=gompertz(3.6, 30.0),
        linear=True,
        count=150,
        draws=100,
        seed=9,
        first=300.0,
    ),
    "invented: a jump, 14 records": case("grok", invented, shape=gompertz(2.5, 8.0), count=14),
    "invented: a jump with spikes": case(
        "grok", invented, shape=gompertz(2.5, 8.0), draws=200, spikes=6, seed=10
    ),
    "invented: better, worse, better": case(
        "double descent",
        invented,
        shape=through((0, 0.1), (0.7, 0.75), (1.5, 0.4), (2.3, 0.4), (3.2, 0.85)),
        draws=200,
        seed=11,
    ),
    "invented: solved, lost, solved": case(
        "double descent",
        invented,
        shape=through((0, 0.1), (0.8, 1), (1.8, 1), (2.3, 0.5), (2.8, 0.5), (3.2, 1)),
        draws=200,
        seed=12,
    ),
    "invented: a bump before the jump": case(
        "grok",
        invented,
        shape=through((0, 0.05), (0.6, 0.25), (1.2, 0.08), (2.7, 0.1), (3.0, 1)),
        draws=200,
        seed=13,
    ),
    "invented: good, then worse": case(
        "misgrok",
        invented,
        shape=through((0, 0.1), (0.9, 0.9), (2.5, 0.9), (3.2, 0.6)),
        draws=200,
        seed=14,
    ),
    "invented: solved, then lost": case(
        "misgrok",
        invented,
        shape=through((0, 0.1), (2.0, 0.1), (2.3, 1.0), (3.3, 1.0), (3.6, 0.3)),
        draws=200,
        seed=15,
    ),
    "invented: test with training": case(
        "none", invented, shape=gompertz(0.6, 8.0), draws=200, seed=16
    ),
    "invented: test with training to 0.8": case(
        "none", invented, shape=gompertz(0.6, 8.0, high=0.8), draws=100, seed=17
    ),
    "invented: chance": case("none", invented, shape=straight(0, 1, 0.1, 0.1), draws=50, seed=18),
}


def curve(name):
    """Times, training, test, and norm and floor where they are known; accuracies or errors."""
    make, given, _ = BANK[name]
    given = dict(given)
    value = given.pop("until", None)
    seen = make(**given)
    if value is not None:
        end = int(np.argmax(seen["test"] >= value)) + 1
        seen = {name: curve[:end] for name, curve in seen.items()}
    return seen


def write(file):
    """All curves in one file, in single precision."""
    found = {}
    for name in BANK:
        for part, values in curve(name).items():
            found[f"{name}/{part}"] = np.asarray(values, np.float32)
    np.savez_compressed(file, **found)


def read(file):
    """The arguments of penchant.measures.grokking for every curve, by name."""
    found = {name: {} for name in BANK}
    with np.load(file) as stored:
        for key in stored.files:
            name, part = key.rsplit("/", 1)
            found[name][part] = stored[key].astype(float)
    for name, given in found.items():
        given["error"] = BANK[name][0] in ERRORS
        given["level"] = LEVEL[given["error"]]
        if "floor" in given:
            given["floor"] = float(given["floor"])
    return found


def draw(curves, file):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(-(-len(curves) // 6), 6, figsize=(20, 2.4 * len(curves) / 6))
    for number, (ax, (name, seen)) in enumerate(zip(axes.flat, curves.items(), strict=False)):
        for part, colour in (("train", "0.6"), ("test", "C0")):
            ax.plot(np.maximum(seen["t"], 1e-9), seen[part], ".-", color=colour, ms=2, lw=1)
        ax.axhline(seen["level"], lw=0.4)
        ax.set_title(f"{number} {name}", fontsize=8)
        ax.set_xscale("log")
        if max(seen["test"]) > 1.5:
            ax.set(yscale="log", ylim=(1e-3, None))
        else:
            ax.set_ylim(-0.03, 1.03)
    figure.tight_layout()
    figure.savefig(file, dpi=60)


if __name__ == "__main__":
    write(sys.argv[1])
    draw(read(sys.argv[1]), sys.argv[2])
