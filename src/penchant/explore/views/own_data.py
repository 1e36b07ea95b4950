"""A table of the visitor's: the predictor that training selects for it, along the scale."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from penchant.arguments import Array
from penchant.explore.controls import Choice, Number, Upload
from penchant.explore.picture import Curve, Panel, Picture, level, line, reach
from penchant.explore.state import Values, View
from penchant.explore.tables import OwnTable, keep, table_of
from penchant.plotting.style import BLACK, CYCLE, GREY, ORANGE, RED
from penchant.solvers.interpolation_path import interpolate_path

LOG10_ALPHAS = np.linspace(2, -5, 29)
NAMED = 6  # columns whose coefficients have a colour of their own
MOST_OTHERS = 100  # columns that are drawn in grey
SECONDS = 4.0
HELD_OUT = 5  # every fifth row is predicted by the others
EXAMPLE = "example.csv"
DEPTHS = {str(depth): f"depth {depth}" for depth in (2, 3, 4)}


def example() -> str:
    """The key of a table that shows what to expect: three of thirty columns decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 30))
    y = X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=25)
    rows = np.column_stack([X, y]).round(3)
    names = ",".join([*(f"x{k + 1}" for k in range(30)), "y"])
    text = "\n".join([names, *(",".join(map(str, row)) for row in rows.tolist())])
    return keep(text.encode(), EXAMPLE)


def standardized(table: OwnTable) -> tuple[Array, Array, tuple[str, ...]]:
    """Columns and target, of mean zero and mean square one; constant columns go."""
    spread = table.values.std(axis=0)
    varies = spread[:-1] > 0
    if not varies.any() or spread[-1] == 0:
        raise ValueError(f"explore: the last column of {table.name!r}, or all others, are constant")
    X, y = table.values[:, :-1][:, varies], table.values[:, -1]
    names = tuple(name for name, keeps in zip(table.columns[:-1], varies, strict=True) if keeps)
    return (X - X.mean(0)) / X.std(0), (y - y.mean()) / spread[-1], names


def path_of(X: Array, y: Array, depth: int) -> Array:
    """Where training ends, a row for every scale: of the best fits the one of least Q."""
    U, sizes, V = np.linalg.svd(X, full_matrices=False)
    rank = int((sizes > sizes[0] * max(X.shape) * np.finfo(float).eps).sum())
    rows, targets = sizes[:rank, None] * V[:rank], U[:, :rank].T @ y
    path = interpolate_path(
        rows, targets, depth, log_alphas=np.log(10) * LOG10_ALPHAS, max_seconds=SECONDS
    )
    return np.asarray(path.beta)


@lru_cache(maxsize=32)
def computed(key: str, depth: int) -> tuple[Array, Array, tuple[str, ...], bool]:
    """Coefficients, and errors of the rows held out, along the scale; names; does alpha matter."""
    X, y, names = standardized(table_of(key))
    held = np.arange(len(y)) % HELD_OUT == HELD_OUT - 1
    trained = path_of(X[~held], y[~held], depth) if held.any() else np.full((1, X.shape[1]), np.nan)
    errors = np.mean((X[held] @ trained.T - y[held, None]) ** 2, axis=0)
    many = np.linalg.matrix_rank(X) < X.shape[1]
    return path_of(X, y, depth), errors, names, bool(many)


def picture(values: Values) -> Picture:
    """The coefficients along the scale, and the error on rows that training has not seen."""
    key, log10_alpha = str(values["table"]), float(values["log10_alpha"])
    beta, errors, names, many = computed(key, int(values["depth"]))
    here = int(np.argmin(abs(LOG10_ALPHAS - log10_alpha)))
    order = list(np.argsort(-np.nan_to_num(abs(computed(key, 2)[0])).max(axis=0)))  # at any depth
    leader = int(np.argmax(abs(beta[here])))
    words = (
        f"α = {10 ** LOG10_ALPHAS[here]:.3g}: the error on the rows held out is {errors[here]:.3g}"
    )
    if not many:
        words = (
            "One predictor alone fits these rows best, whatever α is; its error on the rows "
            + (f"held out is {errors[here]:.3g}")
        )
    sentence = (
        f"{words} of the variance of {table_of(key).columns[-1]!r}. The largest coefficient is "
        f"that of {names[leader]!r}, {beta[here, leader]:.3g} in standard deviations."
    )
    panels = (_coefficients(beta, names, order, here), _errors(errors, here))
    return Picture(panels, sentence, {"error": float(errors[here])})


def _coefficients(beta: Array, names: tuple[str, ...], order: list[int], here: int) -> Panel:
    alphas = 10**LOG10_ALPHAS
    others = order[NAMED:][:MOST_OTHERS]
    gap = np.full((1, len(others)), np.nan)
    x = np.tile(np.append(alphas, np.nan), max(len(others), 1))
    y = np.vstack([beta[:, others], gap]).T.ravel() if len(others) else np.full_like(x, np.nan)
    ends = reach(beta)
    curves = (
        Curve("all others", x, y, "line", GREY, 1),
        *(
            Curve(names[k], alphas, beta[:, k], "line", CYCLE[n % len(CYCLE)])
            for n, k in enumerate(order[:NAMED])
        ),
        Curve("this α", *line(alphas[here], ends), "dotted", BLACK, 1, False),
    )
    return Panel(
        "coefficients",
        "The coefficients at the end of training",
        "initial scale α",
        "coefficient, in standard deviations",
        curves,
        "log",
        x_range=(10.0 ** LOG10_ALPHAS.min(), 10.0 ** LOG10_ALPHAS.max()),
        y_range=ends,
    )


def _errors(errors: Array, here: int) -> Panel:
    alphas = 10**LOG10_ALPHAS
    across, ends = (alphas.min(), alphas.max()), reach(errors, np.array([0.0, 1.1]))
    curves = (
        Curve("the mean of the target", *level(across, 1.0), "dotted", RED, 2),
        Curve("gradient flow", alphas, errors, "line", CYCLE[0]),
        Curve("this α", alphas[[here]], errors[[here]], "stars", ORANGE),
    )
    return Panel(
        "errors",
        "Error on every fifth row, which training has not seen",
        "initial scale α",
        "squared error over the variance",
        curves,
        "log",
        x_range=across,
        y_range=ends,
    )


def python(values: Values) -> str:
    """The predictor for these values, computed from the file."""
    name = table_of(str(values["table"])).name
    return f"""\
import numpy as np
import penchant

table = np.genfromtxt({name!r}, delimiter=",", skip_header=1)
X, y = table[:, :-1], table[:, -1]
X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
fitted = X @ np.linalg.lstsq(X, y)[0]  # y itself, if some predictor fits all rows
q = penchant.Q({values["depth"]}, log_alpha={float(values["log10_alpha"]):g} * np.log(10))
print(penchant.interpolate(X, fitted, q).beta)
"""


def own_data_view(key: str = "") -> View:
    """The view, which begins with the table of `key`, or with an example."""
    return View(
        "data",
        "My data",
        "Drop a CSV file: a line of names, then a row of numbers for each sample; the last column "
        "is predicted. The file stays in the memory of this server, and nothing is written.",
        (
            Upload("table", "your table (.csv)", key or example(), table_of),
            Choice("depth", "depth D", DEPTHS, "2"),
            Number("log10_alpha", "initial scale α", -5, 2, 0.25, -1, power=True),
        ),
        picture,
        python,
        sweep="log10_alpha",
    )
