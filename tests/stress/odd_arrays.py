"""Odd arrays for everything that takes data: a solution, or one sentence."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse
import xarray

import penchant
from damage import Found, chosen, no_sentence
from outcomes import TimeSpent, bounded
from penchant import GradientDescent

SECONDS = 10.0  # of processor time for one call
X = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
TARGETS, LABELS = np.array([1.0, -2.0]), np.array([1.0, -1.0])


def entry(array: Any, value: Any) -> Any:
    other = np.array(array, dtype=complex if isinstance(value, complex) else float)
    other.flat[-1] = value
    return other


def as_matrix(a: np.ndarray) -> Any:
    with warnings.catch_warnings():  # NumPy warns whoever makes one
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(a)


ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "nan": lambda a: entry(a, np.nan),
    "inf": lambda a: entry(a, -np.inf),
    "complex": lambda a: entry(a, 1j),
    "huge entry": lambda a: entry(a, 1e308),
    "tiny entry": lambda a: entry(a, 5e-324),
    "huge": lambda a: a * 1e200,
    "tiny": lambda a: a * 1e-200,
    "subnormal": lambda a: a * 1e-310,
    "zeros": np.zeros_like,
    "equal": np.ones_like,
    "empty": lambda a: np.zeros((0,) * a.ndim),
    "no columns": lambda a: a[..., :0],
    "one axis more": lambda a: a[None],
    "scalar": lambda a: 1.0,
    "other length": lambda a: np.concatenate([a, a]),
    "turned": lambda a: a.T,
    "masked": lambda a: np.ma.masked_array(a, a > 0.9),
    "masked, no mask": np.ma.masked_array,
    "sparse": lambda a: scipy.sparse.csr_array(np.atleast_2d(a)),
    "sparse matrix": lambda a: scipy.sparse.coo_matrix(np.atleast_2d(a)),
    "sparse, another layout": lambda a: scipy.sparse.dia_array(np.atleast_2d(a)),
    "pandas": lambda a: pandas.DataFrame(a) if a.ndim == 2 else pandas.Series(a),
    "pandas, missing": lambda a: pandas.DataFrame(entry(a, np.nan)).astype("Float64"),
    "pandas, categories": lambda a: pandas.Series(list("ab"), dtype="category"),
    "pandas, mixed": lambda a: pandas.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}),
    "pandas, index": lambda a: pandas.Index(a.ravel()),
    "xarray": xarray.DataArray,
    "xarray, labels": lambda a: xarray.DataArray(a, {"dim_0": list("xyz")[: len(a)]}),
    "xarray, dataset": lambda a: xarray.Dataset({"a": xarray.DataArray(a)}),
    "xarray, missing": lambda a: xarray.DataArray(entry(a, np.nan)),
    "matrix": lambda a: as_matrix(a) if a.ndim == 2 else [[v] for v in a],
    "objects": lambda a: a.astype(object),
    "nothing": lambda a: np.full(a.shape, None),
    "none": lambda a: None,
    "texts": lambda a: a.astype(str),
    "text": lambda a: "0.5",
    "dates": lambda a: a.astype("datetime64[s]"),
    "float16": lambda a: a.astype(np.float16),
    "longdouble": lambda a: a.astype(np.longdouble),
    "integers": lambda a: a.astype(np.int8),
    "truth values": lambda a: a > 0,
    "ragged": lambda a: [[1.0, 2.0], [3.0]],
    "records": lambda a: np.zeros(2, [("a", float)]),
    "dict": lambda a: {"a": 1},
    "iterator": iter,
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "big endian": lambda a: a.astype(">f8"),
}


try:
    import torch
except ImportError:  # torch is optional
    pass
else:
    ODD |= {
        "torch": torch.tensor,
        "torch, gradients": lambda a: torch.tensor(a, requires_grad=True),
        "torch, computed": lambda a: 2.0 * torch.tensor(a, requires_grad=True),
        "torch, bfloat16": lambda a: torch.tensor(a).to(torch.bfloat16),
        "torch, float16": lambda a: torch.tensor(a).to(torch.float16),
        "torch, sparse": lambda a: torch.tensor(a).to_sparse(),
        "torch, meta": lambda a: torch.tensor(a).to("meta"),
        "torch, complex": lambda a: torch.tensor(a + 1j),
        "torch, conjugated": lambda a: torch.tensor(a + 1j).conj(),
        "torch, negated view": lambda a: torch.tensor(a + 1j).conj().imag,
        "torch, parameter": lambda a: torch.nn.Parameter(torch.tensor(a)),
        "torch, list": lambda a: [torch.tensor(row) for row in a],
        "torch, list with gradients": lambda a: [torch.tensor(v, requires_grad=True) for v in a],
        "torch, float8": lambda a: torch.tensor(a).to(torch.float8_e4m3fn),
    }


def run(flow: Any, problem: Any, **rules: Any) -> Any:
    return penchant.train(penchant.DiagonalNet(2, alpha=0.5), problem, flow, **rules)


FITS: dict[str, Callable[[Any, Any], Any]] = {
    "interpolate L1": lambda X, y: penchant.interpolate(X, y, penchant.L1()),
    "interpolate L2": lambda X, y: penchant.interpolate(X, y, penchant.L2()),
    "interpolate Q": lambda X, y: penchant.interpolate(X, y, penchant.Q(3, alpha=0.1)),
    "interpolate_path": lambda X, y: penchant.solvers.interpolate_path(
        X, y, 2, log_alphas=[0.0, -3.0]
    ),
    "slow_flow": lambda X, y: penchant.solvers.slow_flow(X, y),
    "Regression": penchant.Regression,
    "DualFlow": lambda X, y: run(penchant.DualFlow(), penchant.Regression(X, y)),
    "ParameterFlow": lambda X, y: run(
        penchant.ParameterFlow(), penchant.Regression(X, y), stop=penchant.Time(10.0)
    ),
    "GradientDescent": lambda X, y: run(
        GradientDescent(1e-2), penchant.Regression(X, y), stop=penchant.Steps(20)
    ),
}
MARGINS: dict[str, Callable[[Any, Any], Any]] = {
    "max_margin L1": lambda X, y: penchant.max_margin(X, y, penchant.L1()),
    "max_margin L2": lambda X, y: penchant.max_margin(X, y, penchant.L2()),
    "max_margin Q": lambda X, y: penchant.max_margin(X, y, penchant.Q(3, alpha=0.1)),
    "separation": lambda X, y: penchant.solvers.separation(X, y),
    "Classification": penchant.Classification,
    "DualFlow of labels": lambda X, y: run(
        penchant.DualFlow(), penchant.Classification(X, y), stop=penchant.stop.LogLoss(-5.0)
    ),
    "ParameterFlow of labels": lambda X, y: run(
        penchant.ParameterFlow(), penchant.Classification(X, y), stop=penchant.Time(10.0)
    ),
}


def odd_arrays(folder: Path, count: int) -> Found:
    every = [
        (f"{name}: {argument} {odd}", call, argument, odd, y)
        for calls, y in ((FITS, TARGETS), (MARGINS, LABELS))
        for (name, call), argument, odd in itertools.product(calls.items(), "Xy", ODD)
    ]
    found = []
    for name, call, argument, odd, y in chosen(every, count):
        given = (ODD[odd](X), y) if argument == "X" else (X, ODD[odd](y))
        found.append((name, call_fault(lambda call=call, given=given: call(*given))))
    return found


def call_fault(call: Callable[[], Any]) -> str:
    """What is wrong with the end of a call; empty for a solution or a sentence."""
    try:
        with bounded(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    except TimeSpent as reason:
        return f"no end: {reason}"
    except (ValueError, penchant.NumericalError) as reason:
        return no_sentence(str(reason))
    except Exception as reason:
        return f"{type(reason).__name__}: {str(reason)[:200]}"
    return ""
