"""Checks of arguments: each error says the rule, the value seen and the way out.

A `door` adds the name of the function that was called.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.door import Invalid
from penchant.suggestions import nearest

Array = NDArray[np.float64]


def finite_array(name: str, value: ArrayLike, ndim: int | None) -> Array:
    """`value` as a float64 array of `ndim` dimensions, without empty axes, NaN or infinity.

    None stands for vectors along the last axis, one or a stack of them, which may be empty.
    """
    array = real_array(name, value, ndim)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise Invalid(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def real_array(name: str, value: ArrayLike, ndim: int | None) -> Array:
    """The same where NaN and infinity have a meaning."""
    raw = plain_array(name, value)
    if raw.dtype.kind not in "fiub":
        kind = {"c": "complex numbers", "U": "strings", "S": "bytes"}.get(raw.dtype.kind)
        raise Invalid(f"{name} must hold real numbers, got {kind or raw.dtype}")
    if raw.ndim != ndim and (ndim is not None or raw.ndim == 0):
        rule = f"{ndim} dimension(s)" if ndim else "one dimension or more"
        raise Invalid(f"{name} must have {rule}, got shape {raw.shape}")
    if raw.size == 0 and (ndim is not None or raw.shape[-1] == 0):
        raise Invalid(f"{name} must not be empty, got shape {raw.shape}")
    return np.ascontiguousarray(raw, dtype=np.float64)


def plain_array(name: str, value: ArrayLike) -> np.ndarray:
    """`value` as an array of whatever NumPy makes of its entries."""
    try:
        return np.asarray(unwrapped(name, value))
    except Invalid:
        raise
    except ValueError:
        raise Invalid(f"{name} must be a rectangular array, got ragged rows") from None
    except (TypeError, RuntimeError) as reason:  # how tensors and tables refuse the conversion
        cause = f"{type(value).__name__} ({str(reason).splitlines()[0]:.120})"
        raise Invalid(f"{name} must be an array of numbers, got {cause}") from None


def plain_vector(value: Any) -> TypeGuard[Array]:
    """Whether `value` is what `finite_array` would return for it, a vector."""
    plain = type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 1
    return plain and value.size > 0 and value.flags.c_contiguous and bool(np.isfinite(value).all())


def entries(name: str, value: ArrayLike, count: int, rule: str) -> Array:
    """`value` as a vector of `count` numbers; `rule` says what one of them stands for."""
    array = finite_array(name, value, ndim=1)
    if len(array) != count:
        raise Invalid(f"{name} must have {rule} ({count}), got {len(array)}")
    return array


def unwrapped(name: str, value: Any) -> Any:
    """`value` as NumPy can take it: tensors detached; masked and sparse arrays are refused."""
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise Invalid(
                f"{name} is a masked array with masked entries; drop those rows, or fill "
                "them with .filled(value)"
            )
        return value.data
    if type(value).__module__.startswith("scipy.sparse"):
        raise Invalid(f"{name} is a sparse matrix; give {name}.toarray()")
    if hasattr(value, "detach") and hasattr(value, "layout"):  # a PyTorch tensor
        if "strided" not in str(value.layout):
            raise Invalid(f"{name} is a sparse tensor; give {name}.to_dense()")
        plain = value.detach().cpu().resolve_conj().resolve_neg()
        short = plain.dtype.is_floating_point and plain.element_size() < 4
        return plain.float() if short else plain  # NumPy has no bfloat16 and no float8
    return value


def weakly_held(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as JAX can hold it, by a weak reference.

    NumPy's functions such as np.square allow none, and JAX ends the process after some calls.
    """
    try:
        weakref.ref(function)
    except TypeError:
        return lambda *arguments: function(*arguments)
    return function


def regression_data(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """`X` (samples x features) and `y` (samples), checked and of matching length."""
    X = finite_array("X", X, ndim=2)
    y = finite_array("y", y, ndim=1)
    if len(X) != len(y):
        raise Invalid(f"X has {len(X)} rows but y has {len(y)} entries; they must match")
    return X, y


def classification_data(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """`X` (samples x features) and labels `y` of -1 and +1, checked and of matching length."""
    X, y = regression_data(X, y)
    return X, labels(y)


def labels(y: Array) -> Array:
    """`y` if its entries are -1 and +1."""
    seen = np.unique(y)
    if 0.0 in seen and np.isin(seen, (0.0, 1.0)).all():
        raise Invalid(
            "labels must be -1 and +1, got 0 and 1; write 2 * y - 1, so that a margin is y * f(x)"
        )
    if not np.isin(seen, (-1.0, 1.0)).all():
        raise Invalid(f"labels must be -1 and +1, got {_few(seen)}")
    return y


def _few(values: Array) -> str:
    shown = ", ".join(f"{v:g}" for v in values[:4])
    return shown if len(values) <= 4 else f"{shown} and {len(values) - 4} more"


def real(name: str, value: object, *, rule: str = "a finite number") -> float:
    """`value` as a finite float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    refuse_long(name, value)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise Invalid(f"{name} must be {rule}, got {value!r}")
    return float(value)


def refuse_long(name: str, value: object) -> None:
    """Raises a ValueError for an integer that float64 does not hold, without its digits."""
    if isinstance(value, int) and value.bit_length() > 1023:
        digits = int(value.bit_length() * math.log10(2)) + 1
        raise Invalid(
            f"{name} must be a number that float64 holds, got an integer of about "
            f"{digits} digits; give at most 1e307 in size"
        )


def text(name: str, value: object) -> str:
    """`value` if it is a string."""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, got {value!r:.80}")
    return value


def with_parts(name: str, value: object, rule: str, *parts: str) -> None:
    """Raises a ValueError unless `value` has these attributes; `rule` says what it must be."""
    for part in parts:
        if not hasattr(value, part):
            seen = f"{type(value).__name__} without {part}"
            raise Invalid(f"{name} must be {rule}, got {seen}")


def flag(name: str, value: object) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise Invalid(f"{name} must be True or False, got {value!r}")
    return bool(value)


def not_negative(name: str, value: object) -> float:
    """`value` as a finite float of at least 0."""
    number = real(name, value, rule="a finite number >= 0")
    if number < 0:
        raise Invalid(f"{name} must be >= 0, got {number}")
    return number


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    number = real(name, value, rule="a finite number > 0")
    if number <= 0:
        raise Invalid(f"{name} must be > 0, got {number}")
    return number


def decay_rate(name: str, value: object) -> float:
    """`value` as a finite float of at least 0."""
    rate = real(name, value, rule="a finite number >= 0")
    if rate < 0:
        raise Invalid(
            f"{name} must be >= 0, got {rate:g}; with a negative one the"
            " parameters grow without bound"
        )
    return rate


def share(name: str, value: object, interval: str = "[0, 1)") -> float:
    """`value` as a float in [0, 1) or (0, 1)."""
    number = real(name, value, rule=f"a number in {interval}")
    if not 0 <= number < 1 or (number == 0 and interval[0] == "("):
        raise Invalid(f"{name} must be in {interval}, got {number:g}")
    return number


def integer(name: str, value: object, *, least: int) -> int:
    """`value` as an int of at least `least`; 3.0 counts as 3."""
    refuse_long(name, value)
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        value = int(float(value))
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise Invalid(f"{name} must be an integer >= {least}, got {value!r}")
    if value < least:
        raise Invalid(f"{name} must be at least {least}, got {value}")
    return int(value)


def integers(*, least: int = 1, **given: object) -> list[int]:
    """The numbers given by their names, each as an int of at least `least`."""
    return [integer(name, value, least=least) for name, value in given.items()]


def matrix_shape(shape: object, rule: str = "(rows, columns)") -> tuple[int, int]:
    """`shape` as (rows, columns), integers of at least 1; `rule` says what it may be."""
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise Invalid(f"shape must be {rule}, got {shape!r}")
    rows, columns = (integer("shape", side, least=1) for side in shape)
    return rows, columns


def shape_or_none(shape: object) -> tuple[int, int] | None:
    """The same where there need be no shape."""
    return None if shape is None else matrix_shape(shape, "(rows, columns) or None")


def one_of(name: str, value: str, known: Iterable[str], listed: str = "") -> str:
    """`value` if it is known; otherwise an error that offers the nearest names.

    Where nothing is near, the error lists all of them, or says where they are `listed`.
    """
    known = sorted(known) if isinstance(known, set | frozenset) else list(known)
    if value in known:
        return value
    near = nearest(str(value), known)
    other = listed or f"known: {', '.join(known)}"
    hint = f"did you mean {', '.join(near)}?" if near else other
    raise Invalid(f"unknown {name} {value!r:.80}; {hint}")


def log_scale(depth: int, alpha: object, log_alpha: object, *mu: object) -> float:
    """log alpha from whichever one of alpha, log_alpha and perhaps mu = alpha**depth is given."""
    scales = ("alpha", "log_alpha", "mu")[: 2 + len(mu)]
    pairs = zip(scales, (alpha, log_alpha, *mu), strict=True)
    names = [name for name, value in pairs if value is not None]
    if len(names) != 1:
        rule = f"{', '.join(scales[:-1])} and {scales[-1]}"
        seen = " and ".join(names) if names else "none of them"
        raise Invalid(f"give exactly one of {rule}, got {seen}")
    if log_alpha is not None:
        return real("log_alpha", log_alpha)
    if alpha is not None:
        return math.log(positive("alpha", alpha))
    return math.log(positive("mu", mu[0])) / depth


def unit_vector(name: str, value: ArrayLike) -> Array:
    """`value` over its norm; a vector of norm one stays as it is, to the last bit."""
    vector = finite_array(name, value, ndim=1)
    length = float(np.linalg.norm(vector))
    if length == 0:
        raise Invalid(f"{name} must not be zero")
    return vector.copy() if math.isclose(length, 1.0, rel_tol=1e-12) else vector / length


def tilt_or_none(tilt: ArrayLike | None) -> Array | None:
    """The vector of a tilt; None stands for none."""
    return None if tilt is None else finite_array("tilt", tilt, ndim=1)


def start_shape(shape: ArrayLike | None) -> Array | None:
    """|w0| of a start alpha * w0 without zeros; None stands for all ones."""
    if shape is None:
        return None
    array = np.abs(finite_array("shape", shape, ndim=1))
    if (array == 0).any():
        where = int(np.argmin(array))
        raise Invalid(f"shape must have no zero entries, got 0.0 at index {where}")
    return array
