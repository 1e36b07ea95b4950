"""The cases of cases.toml in the old grammar of training and in the new one.

This folder leaves the tree when the rewrite of training is done. What the new grammar does not fix
yet is a guess in `new`, to be corrected here: `precision`, `scaled_step`, `probes`, `part`, `twin`,
`form` and, for a penalty that is not L2, `decoupled` as arguments of the method; held_sweep with
`learning_rate`; Nuclear() on the flat parameters of a LinearMatrix; penalties that PENALTIES does
not list (Blocks, UserPenalty, DerivativeMatch, "l2" per tensor), which keep their old text.
"""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
HALF = ("SGD", "Adam", "Subgradient", "Proximal", "HeldNorm", "held_sweep")  # loss (1/2) sum r^2
LABELS = ("exp", "logistic", "points", "majority")  # problems with margins, their loss a mean
PENALTIES = {
    "AbsoluteSum()": "L1()",
    "SquaredSum()": "L2()",
    "EuclideanNorm()": "L2(squared=False)",
    "NuclearNorm((4, 4))": "Nuclear()",
    "NuclearNorm((5, 5))": "Nuclear()",
    "l1": "L1()",
    "l2^2": "L2()",
    "l2": "PerTensor(L2(squared=False))",
    "l2 over all": "L2(squared=False)",
    "nuclear": "Nuclear()",
}
METHODS = {"ClassDescent": "GradientDescent", "TokenAdam": "Adam"}
WORDS = {"step": "learning_rate", "rate": "weight_decay", "scaled_step": "scaled"}
BUDGETS = {"steps": "Steps", "t_max": "Time", "epochs": "Epochs", "until_loss": "Loss"}


class Names(dict):
    """What the texts of calls may name: everything public, NumPy, and the functions below."""

    def __missing__(self, name: str) -> Any:
        import tacit

        if name == "zigzag":
            from tacit.problems.univariate import zigzag

            return zigzag
        public = name in tacit.__all__ or not hasattr(np, name)
        return getattr(tacit, name) if public else getattr(np, name)


def cube(w: Any) -> Any:
    return w**3


def bent(w: Any, X: Any) -> Any:
    return X @ (w + w**3 / 3)


def half(dimension: int) -> Any:
    return np.full(dimension, 0.5)


def quartic(theta: Any) -> Any:
    return (theta**4).sum()


OWN = {"cube": cube, "bent": bent, "half": half, "quartic": quartic, "replace": dataclasses.replace}


def cases() -> list[dict[str, Any]]:
    """Every case as plain data; its id is that of the method and its number within it."""
    table = tomllib.loads((HERE / "cases.toml").read_text())
    found = []
    for name, listed in table["methods"].items():
        for number, line in enumerate(listed["cases"], 1):
            model, problem, more = (part.strip() for part in line.split("|"))
            settings = eval(f"dict({listed['base']})") | eval(f"dict({more})")
            about = {"model": table["models"][model], "problem": table["problems"][problem]}
            kind = {"method": name.removeprefix("WeightDecay-"), "data": problem}
            found.append({"id": f"{name}-{number:02}", **kind, **about, "settings": settings})
    return found


def run(case: dict[str, Any], written: str) -> Any:
    """What the text `written`, an expression in `model` and `problem`, gives for the case."""
    names = Names(OWN)
    names |= {"model": eval(case["model"], {}, names), "problem": eval(case["problem"], {}, names)}
    return eval(written, {}, names)


def call(name: str, *given: str, **settings: Any) -> str:
    """The text of a call; a setting with a bracket in it is a text already."""
    named = {k: v if isinstance(v, str) and "(" in v else repr(v) for k, v in settings.items()}
    return f"{name}({', '.join([*given, *(f'{key}={value}' for key, value in named.items())])})"


def decays(case: dict[str, Any]) -> bool:
    return case["id"].startswith("WeightDecay")


def old(case: dict[str, Any]) -> str:
    """The case in the old grammar."""
    settings = dict(case["settings"])
    if case["method"] == "held_sweep":
        return call("held_sweep", "model", "problem", **settings)
    rate = settings.pop("rate") if decays(case) else None
    method = call(case["method"], **settings)
    method = method if rate is None else call("WeightDecay", method, rate=rate)
    return f"{method}.run(model, problem)"


def new(case: dict[str, Any]) -> str:
    """The case in the new grammar."""
    name, left = case["method"], dict(case["settings"])
    halved = name in HALF and case["data"] not in LABELS
    problem = "replace(problem, loss='half squares')" if halved else "problem"
    if name == "held_sweep":
        return call(name, "model", problem, **{WORDS.get(key, key): left[key] for key in left})
    if name == "ImageTraining":
        rule = left.pop("optimizer")
        name = "Adam" if rule == "adam" else "SGD"
        left |= {"momentum": left.get("momentum", 0.9)} if rule == "momentum" else {}
    model = "model"
    if name in METHODS:  # nets on tokens have the precision, and 32 probes
        left.pop("probes", None)
        model = f"{case['model'][:-1]}, precision={left.pop('precision')!r})"
    train = {"penalty": penalty(left), "stop": stops(case, left), "record": records(case, left)}
    train |= {key: left.pop(key, None) for key in ("batch", "seed")}
    method = call(METHODS.get(name, name), **{WORDS.get(key, key): left[key] for key in left})
    train = {key: value for key, value in train.items() if value is not None}
    return call("train", model, problem, method, **train)


def penalty(left: dict[str, Any]) -> str | None:
    """The penalty with its weight; None where there is none or a decoupled decay replaces it."""
    named, beta = left.pop("penalty", None), left.pop("beta", None)
    if named is None:
        return None
    if left.get("decoupled") and PENALTIES.get(named) == "L2()":
        del left["decoupled"]
        left["weight_decay"] = 2 * beta
        return None
    return f"{beta} * ({PENALTIES.get(named, named)})"


def stops(case: dict[str, Any], left: dict[str, Any]) -> str:
    """The stop rules: budgets, then what the old `until` and `loss` meant."""
    found = [f"{rule}({left.pop(key)})" for key, rule in BUDGETS.items() if key in left]
    loss, until = left.pop("loss", 0), left.pop("until", None)
    if isinstance(until, str):
        found.append(f"*{until}" if until.startswith("[") else until)
    elif isinstance(until, dict):
        ((name, value),) = until.items()
        found.append(f"Loss({value})" if name == "loss" else f"Below({name!r}, {value})")
    elif until is not None:
        part = "train" if case["method"] == "ImageTraining" else "test"
        found.append(f"Accuracy({part}={until})")
    if loss and not isinstance(until, str) and not decays(case):  # decay ends with its time alone
        found.append(f"Interpolated(relative={loss})")
    return f"[{', '.join(found)}]"


def records(case: dict[str, Any], left: dict[str, Any]) -> str:
    """The record rules; every case has one."""
    unit = "epochs" if case["method"] == "ImageTraining" else "steps"
    if case["method"].endswith("Flow"):
        unit = "margins" if case["data"] in LABELS and not decays(case) else "times"
    dense, asked = left.pop("points_per_decade", None), left.pop("record", None)
    found = [] if dense is None else [f"LogSpaced({dense})"]
    found += [] if asked is None else [f"At({unit}={asked})"]
    return f"[{', '.join(found)}]"
