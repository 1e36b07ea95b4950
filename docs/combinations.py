"""Generate docs/combinations.md, which method trains which model on which problem.

`python docs/combinations.py` tries all of them for a moment, which takes some minutes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tacit

PAGE = Path(__file__).resolve().parent / "combinations.md"


def net(parameters: Any, X: Any) -> Any:
    """A function of the user's, whose parameters are a dictionary."""
    import jax.numpy as jnp

    return jnp.tanh(X @ parameters["inner"]) @ parameters["outer"]


def started() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"inner": 0.5 * rng.standard_normal((4, 3)), "outer": 0.5 * rng.standard_normal(3)}


def images() -> Any:
    rng = np.random.default_rng(0)
    arrays = rng.random((12, 8, 8, 1)), np.arange(12) % 2
    about = {"classes": ("a", "b"), "description": "noise", "recipe": {"generator": "images"}}
    return tacit.Images("noise", *arrays, *arrays, **about)


PROBLEMS: dict[str, Callable[[], Any]] = {
    "Regression": lambda: tacit.sparse_regression(5, 4, sparsity=1, seed=1),
    "Classification": lambda: tacit.separable_points(5, 4, margin=0.5, seed=1),
    "Completion": lambda: tacit.low_rank_completion(samples=3, dimension=2, rank=1, seed=1),
    "Sensing": lambda: tacit.gaussian_sensing(samples=3, dimension=2, rank=1, seed=1),
    "token pairs": lambda: tacit.modular_addition(5, fraction=0.6),
    "Images": images,
}
MODELS: dict[str, Callable[[], Any]] = {
    "LinearPredictor": lambda: tacit.LinearPredictor(0.5),
    "DiagonalNet": lambda: tacit.DiagonalNet(2, alpha=0.5),
    "DiagonalNet, depth 3": lambda: tacit.DiagonalNet(3, alpha=0.5),
    "two_layer": lambda: tacit.two_layer(3, alpha=0.5),
    "FunctionModel": lambda: tacit.FunctionModel(net, started()),
    "LinearMatrix": lambda: tacit.LinearMatrix(start=np.eye(2)),
    "Factorization": lambda: tacit.Factorization(2, alpha=0.5),
    "DeepFactorization": lambda: tacit.DeepFactorization(3, 2, alpha=0.5),
    "TokenMLP": lambda: tacit.TokenMLP(embedding=4, width=4),
    "TwoTokenNet": lambda: tacit.TwoTokenNet(4, alpha=0.5),
    "dense_net": lambda: tacit.dense_net(4),
    "conv_net": lambda: tacit.conv_net("2-M-FC"),
}
METHODS: dict[str, Callable[[], Any]] = {
    "GradientDescent": lambda: tacit.GradientDescent(1e-3),
    "SGD": lambda: tacit.SGD(1e-3, momentum=0.9),
    "Subgradient": lambda: tacit.Subgradient(1e-3),
    "Proximal": lambda: tacit.Proximal(1e-3),
    "Adam": lambda: tacit.Adam(1e-3),
    "NormalizedDescent": lambda: tacit.NormalizedDescent(1e-3),
    "HeldNorm": lambda: tacit.HeldNorm(1e-3),
    "DualFlow": tacit.DualFlow,
    "ParameterFlow": tacit.ParameterFlow,
    "MatrixFlow": tacit.MatrixFlow,
    "TangentFlow": tacit.TangentFlow,
}
FLOWS = ("DualFlow", "ParameterFlow", "MatrixFlow", "TangentFlow")


def tried(model: str, problem: str, method: str) -> str | None:
    """None if the combination trains for a moment, else the sentence that refuses it."""
    given: dict[str, Any] = {"stop": tacit.Time(1e-3) if method in FLOWS else tacit.Steps(2)}
    if method in ("Proximal", "Subgradient"):
        given["penalty"] = 1e-3 * tacit.L1()
    try:
        path = tacit.train(MODELS[model](), PROBLEMS[problem](), METHODS[method](), **given)
    except ValueError as refusal:
        return str(refusal)
    assert np.isfinite(path.log_loss)
    return None


def told(refusal: str | None) -> str | None:
    """The sentence without the names of the method, the model and the problem."""
    if refusal is None:
        return None
    rest = re.sub(r"got (a )?\w+", "got another", refusal.partition(": ")[2])
    return re.sub(r"^\w+ answers", "the net answers", rest)


def walk() -> Iterator[tuple[str, str, str]]:
    return ((m, p, w) for p in PROBLEMS for m in MODELS for w in METHODS)


def page() -> str:
    lines = [
        "# What trains what",
        "",
        "Made by `python docs/combinations.py`, which tries every combination for a moment: a dot"
        " trains, a number is the sentence below that refuses it, which also names the method, the"
        " model and the problem. Methods are the columns.",
    ]
    notes: list[str] = []
    for problem in PROBLEMS:
        lines += ["", f"## {problem}", "", f"| model | {' | '.join(METHODS)} |"]
        lines.append("|---" * (len(METHODS) + 1) + "|")
        for model in MODELS:
            cells = []
            for method in METHODS:
                refusal = told(tried(model, problem, method))
                if refusal is not None and refusal not in notes:
                    notes.append(refusal)
                cells.append("·" if refusal is None else str(notes.index(refusal) + 1))
            lines.append(f"| {model} | {' | '.join(cells)} |")
    numbered = [f"{k}. {note}" for k, note in enumerate(notes, start=1)]
    return "\n".join([*lines, "", "## Refusals", "", *numbered, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
