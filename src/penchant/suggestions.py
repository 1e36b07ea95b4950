"""What to say where a name is not known: the nearest names, and what the field calls them.

One place serves the public names (`penchant.lasso`), the arguments of functions and classes
(`GradientDescent(lr=0.1)`), and the words of the command line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Self

# what others call it: our public names; each is tried without regard to case and underscores
NAMES = {
    "lasso": ("L1",),
    "basispursuit": ("L1", "interpolate"),
    "ridge": ("L2", "kernel_regression"),
    "minnorm": ("L2", "least_norm"),
    "tracenorm": ("Nuclear",),
    "nuclearnorm": ("Nuclear",),
    "hypentropy": ("Q",),
    "elasticnet": ("L1", "L2"),
    "sgd": ("GradientDescent",),
    "gd": ("GradientDescent",),
    "adamw": ("Adam",),
    "signsgd": ("SignDescent",),
    "sharpnessawareminimization": ("SAM",),
    "gradientflow": ("ParameterFlow", "DualFlow"),
    "proximalgradient": ("Proximal",),
    "ista": ("Proximal",),
    "ntk": ("tangent_kernel",),
    "neuraltangentkernel": ("tangent_kernel",),
    "empiricalntk": ("tangent_kernel",),
    "cka": ("kernel_alignment",),
    "svm": ("max_margin",),
    "hardmargin": ("max_margin",),
    "regularizationpath": ("interpolate_path", "max_margin_path"),
    "lassopath": ("interpolate_path",),
    "fit": ("train",),
    "earlystopping": ("Loss", "Time", "Steps"),
    "diagonallinearnetwork": ("DiagonalNet",),
    "diagonalnetwork": ("DiagonalNet",),
    "matrixfactorization": ("Factorization",),
    "matrixcompletion": ("Completion",),
    "matrixsensing": ("Sensing",),
    "linearregression": ("Regression",),
    "logisticregression": ("Classification",),
    "linearmodel": ("LinearPredictor",),
    "mlp": ("dense_net", "relu_net"),
    "cnn": ("conv_net",),
    "transformer": ("TokenTransformer",),
    "jaxmodel": ("FunctionModel",),
    "modularaddition": ("modular_arithmetic",),
    "lazy": ("kernel_regime", "watch"),
    "regime": ("kernel_regime", "watch"),
    "learningcurve": ("plot",),
    "imshow": ("plot",),
    "callback": ("watch",),
    "monitor": ("watch",),
    "gridsearch": ("Study", "run"),
    "sweep": ("Study", "run"),
}
# what others call an argument: ours, of which those that the function has are offered
ARGUMENTS = {
    "lr": ("learning_rate", "method"),
    "learningrate": ("learning_rate", "method"),
    "eta": ("learning_rate", "method"),
    "stepsize": ("learning_rate", "method"),
    "momentum": ("method",),
    "wd": ("weight_decay", "penalty"),
    "decay": ("weight_decay", "penalty"),
    "weightdecay": ("penalty",),
    "loss": ("problem",),
    "l2": ("weight_decay", "penalty"),
    "beta1": ("mean_decay",),
    "beta2": ("square_decay",),
    "b1": ("mean_decay",),
    "b2": ("square_decay",),
    "betas": ("mean_decay", "square_decay"),
    "eps": ("epsilon",),
    "optimizer": ("method",),
    "optim": ("method",),
    "opt": ("method",),
    "net": ("model",),
    "network": ("model",),
    "data": ("problem",),
    "regularization": ("regularizer", "penalty"),
    "reg": ("regularizer", "penalty"),
    "penalty": ("regularizer",),
    "steps": ("stop",),
    "nsteps": ("stop",),
    "epochs": ("stop",),
    "nepochs": ("stop",),
    "maxiter": ("max_steps", "stop", "max_seconds"),
    "niter": ("max_steps", "stop"),
    "tol": ("rtol", "tolerance", "stop"),
    "batchsize": ("batch",),
    "randomstate": ("seed",),
    "rng": ("seed",),
    "key": ("seed",),
    "verbose": ("progress",),
    "callback": ("progress",),
    "checkpoint": ("resume",),
    "n": ("samples",),
    "nsamples": ("samples",),
    "d": ("dimension",),
    "dim": ("dimension",),
    "nfeatures": ("dimension",),
    "features": ("dimension",),
    "k": ("sparsity", "width", "rank"),
    "nnz": ("sparsity",),
    "scale": ("alpha",),
    "initscale": ("alpha",),
    "init": ("start", "alpha"),
    "layers": ("depth",),
    "nlayers": ("depth",),
    "l": ("depth",),
    "hiddensize": ("width",),
    "hidden": ("width", "widths"),
    "nhidden": ("width",),
    "m": ("width",),
    "sigma": ("noise",),
    "njobs": ("jobs",),
    "x": ("X",),
    "labels": ("y",),
    "target": ("y",),
    "targets": ("y",),
    "xtest": ("test",),
}


def nearest(value: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The names most like `value`, the likeliest first, without those that are much less so."""
    matcher = SequenceMatcher(b=value.upper())
    similarity: dict[str, float] = {}
    for candidate in known:
        matcher.set_seq1(candidate.upper())
        similarity[candidate] = matcher.ratio()
    least = max(0.5, max(similarity.values(), default=0.0) - 0.15)
    likely = [candidate for candidate, ratio in similarity.items() if ratio >= least]
    return sorted(likely, key=lambda candidate: -similarity[candidate])[:most]


def meant(value: str, known: Iterable[str], table: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What the field's word `value` is called here, else the names most like it."""
    names = list(known)
    synonyms = table.get(value.replace("_", "").replace("-", "").lower(), ())
    return [name for name in synonyms if name in names] or nearest(value, names)


def unknown_name(module: str, name: str, paths: Mapping[str, str]) -> str:
    """The sentence of an AttributeError: `paths` are all public names with their paths."""
    sentence = f"module {module!r} has no attribute {name!r}"
    likely = [] if name.startswith("_") else meant(name, paths, NAMES)
    return (
        f"{sentence}; did you mean {_either([paths[n] for n in likely])}?" if likely else sentence
    )


def refuse_unknown(function: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise a TypeError if `function` has no argument of one of these names."""
    known = _arguments(function)
    unknown = next((name for name in names if known is not None and name not in known), None)
    if known is None or unknown is None:
        return
    likely = meant(unknown, known, ARGUMENTS)
    way = f"did you mean {_either(likely)}?" if likely else f"it takes {', '.join(known) or 'none'}"
    caller = getattr(function, "__name__", "it")
    raise TypeError(f"{caller}: unexpected keyword argument {unknown!r}; {way}") from None


@functools.lru_cache(maxsize=1024)
def _arguments(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names that may be given to `function`; None if it takes any, or does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


class NamedArguments:
    """A class whose constructor says what may have been meant by an argument that it lacks."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            refuse_unknown(cls, kwargs)
        return super().__new__(cls)

    # what inspect.signature says of a class without a constructor of its own
    __new__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("cls", inspect.Parameter.POSITIONAL_ONLY)]
    )
