"""Theorem 2.1: fast memorization, then about 1/(step beta) steps in which the penalty falls."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    double_precision,
    log_log,
    sized,
    within,
)
from penchant.measures import lojasiewicz
from penchant.plotting import latex
from penchant_papers.instances import listed, slope
from penchant_papers.notsawo2025.recoveries import reached

SHARP = ["line, l1", "circle, weighted l1"]  # with a kink at the least interpolator
SMOOTH = ["line, l2 squared", "product, l1"]
MOST = 800  # records of a run
TIME = 4.0  # tau = step beta steps: the "Theta(1/(step beta))" after which errors are read
NEAR = 0.02  # h - h_g* that counts as generalized
BOUND = 10.0  # above every O() whose constant is of order one, here 0.2 to 5
WINDOW = 40  # errors are maxima over the last steps, as subgradient descent keeps moving
LEVELS = (1e-3, 1e-6, 1e-9)  # of g, on the way to memorization


def shown(name: str) -> str:
    """The name of an example with its norm as LaTeX."""
    return name.replace("l1", r"$\ell_1$").replace("l2", r"$\ell_2$")


@dataclasses.dataclass(frozen=True)
class Example:
    """(1/2)|residual|^2 + beta h with known least values; H is a subgradient of h."""

    residual: Callable[[Any], Any]
    h: Callable[[Any], Any]
    H: Callable[[Any], Any]
    start: tuple[float, ...]
    h_star: float  # the least h where g = 0
    f_star: Callable[[float], float]  # the least g + beta h
    radius: float  # of a ball around the start on which g is r-CL
    lipschitz: float  # of the Jacobian of the residual

    def g(self, x: Any) -> Any:
        return 0.5 * (self.residual(x) ** 2).sum()


@functools.cache
def examples() -> dict[str, Example]:
    """Two losses, each with a penalty that has a kink at its least interpolator and one without."""
    import jax.numpy as jnp

    w = np.array([1.0, 2.0])

    def line(x: Any) -> Any:
        return jnp.stack([x[0] + 2 * x[1] - 2])

    def circle(x: Any) -> Any:
        return jnp.stack([x[0] ** 2 + x[1] ** 2 - 1])

    def product(x: Any) -> Any:
        return jnp.stack([x[0] * x[1] - 1])

    def l1(x: Any, weights: Any = 1.0) -> Any:
        return (weights * jnp.abs(x)).sum()

    weighted = (lambda x: l1(x, w), lambda x: w * jnp.sign(x))
    square = (lambda x: (x**2).sum(), lambda x: 2 * x)
    cases = [
        Example(line, l1, jnp.sign, (0.0, 0.0), 1.0, lambda b: b - b**2 / 8, 1.0, 1e-9),
        Example(circle, *weighted, (0.9, 0.8), 1.0, lambda b: radial(1.0, b), 0.5, 2.0),
        Example(line, *square, (2.0, -1.0), 0.8, ridge, 1.0, 1e-9),
        Example(product, l1, jnp.sign, (2.0, 0.2), 2.0, lambda b: radial(2.0, b), 0.8, 1.0),
    ]
    return dict(zip([*SHARP, *SMOOTH], cases, strict=True))


def radial(weight: float, beta: float) -> float:
    """The least (z^2 - 1)^2/2 + weight beta z near z = 1."""
    roots = np.roots([2.0, 0.0, -2.0, weight * beta])
    z = float(max(roots.real))
    return 0.5 * (z**2 - 1) ** 2 + weight * beta * z


def ridge(beta: float) -> float:
    """The least (x + 2 y - 2)^2/2 + beta (x^2 + y^2)."""
    r = np.array([1.0, 2.0])
    a = np.linalg.solve(np.outer(r, r) + 2 * beta * np.eye(2), 2 * r)
    return float(0.5 * (r @ a - 2) ** 2 + beta * a @ a)


@functools.cache
def _compiled(name: str) -> Any:
    """(start, numbers of steps, step, beta) -> points, g and h after x <- x - step (G + beta H)."""
    import jax

    example = examples()[name]
    gradient = jax.grad(example.g)

    def descend(start: Any, counts: Any, step: Any, beta: Any) -> Any:
        def body(_: Any, x: Any) -> Any:
            return x - step * (gradient(x) + beta * example.H(x))

        def advance(x: Any, count: Any) -> Any:
            x = jax.lax.fori_loop(0, count, body, x)
            return x, (x, example.g(x), example.h(x))

        return jax.lax.scan(advance, start, counts)[1]

    return jax.jit(descend)


def descend(name: str, step: float, beta: float, at: Array) -> tuple[Array, Array, Array]:
    """(points, g, h) of subgradient descent after the numbers of steps in `at`, one row each."""
    counts = np.zeros(MOST, dtype=int)  # of fixed length, so that an example is compiled once
    counts[: len(at)] = np.diff(at, prepend=0)
    with double_precision():
        start = np.array(examples()[name].start)
        points, g, h = (np.asarray(v) for v in _compiled(name)(start, counts, step, beta))
    return points[: len(at)], g[: len(at)], h[: len(at)]


def cell(example: str, beta: float, *, step: float) -> dict[str, float]:
    """Errors after TIME/(step beta) steps, half as many, or log(1/(step beta)) in place of TIME.

    The errors |f - f*| and |h - h_g*| are the largest in the window; `above` is the largest
    h - h_g*, or 0 if h is always below h_g*. Where h has a kink, no logarithm is needed (NaN).
    """
    step_beta, case = step * beta, examples()[example]
    times = {"": TIME, "half_": TIME / 2}
    if example in SMOOTH:
        times["log_"] = math.log(1 / step_beta)
    ends = {name: round(time / step_beta) for name, time in times.items()}
    near = np.unique(np.round(np.linspace(0.02, TIME, 400) / step_beta))
    windows = [np.arange(end - WINDOW, end + 1.0) for end in ends.values()]
    at = np.unique(np.concatenate([near, *windows]))
    _, g, h = descend(example, step, beta, at)
    gap, off = h - case.h_star, g + beta * h - case.f_star(beta)
    errors = dict.fromkeys(("log_f", "log_h", "log_above"), math.nan)
    for name, end in ends.items():
        last = (at >= end - WINDOW) & (at <= end)
        errors[f"{name}f"] = float(np.abs(off[last]).max())
        errors[f"{name}h"] = float(np.abs(gap[last]).max())
        errors[f"{name}above"] = max(float(gap[last].max()), 0.0)
    kept = np.isin(at, near)
    errors["delay"] = reached(near, np.maximum(gap[kept], 1e-12), NEAR)
    errors["memorized"] = float(memorization(example, beta)[0][0])
    return errors


def memorization(example: str, beta: float) -> tuple[Array, Array]:
    """The numbers of steps (of size 0.1) at which g passes LEVELS, and the last point of these."""
    record = np.arange(1, MOST + 1.0)
    points, g, _ = descend(example, 0.1, beta, record)
    return np.array([reached(record, g, level) for level in LEVELS]), points[np.argmax(g <= 1e-9)]


def ball(example: str) -> dict[str, Any]:
    """The CL condition on the ball around the start, and the distance of the memorized point.

    `with_first_chi` is 2 sqrt(g/chi) with chi = |grad g|^2/g at the start, not the least on the
    ball.
    """
    import jax

    case, start = examples()[example], np.array(examples()[example].start)
    options: Any = {"lipschitz": case.lipschitz, "starts": 4, "steps": 60}
    condition = lojasiewicz(case.residual, case.start, case.radius, **options)
    levels, point = memorization(example, 1e-6)
    with double_precision():
        g, gradient = jax.jit(jax.value_and_grad(case.g))(start)
    return {
        "holds": bool(condition.holds),
        "chi": condition.lower,
        "zero_within": condition.zero_within,
        "with_first_chi": 2 * float(g) / float(np.linalg.norm(np.asarray(gradient))),
        "levels": levels,
        "way": float(np.linalg.norm(point - start)),
    }


study = sized(
    "N-T21",
    function=cell,
    arguments={"step": 0.1},
    grid={"example": [*SHARP, *SMOOTH], "beta": [1e-2, 1e-3, 1e-4]},
    printed={"grid": {"beta": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]}},
)
steps = sized(
    "N-T21-steps",
    function=cell,
    arguments={"beta": 1e-2},
    grid={"example": SHARP, "step": [1e-1, 1e-2, 1e-3, 1e-4]},
)
balls = sized(
    "N-T21-ball", function=ball, grid={"example": [*SHARP, *SMOOTH]}, dims={"levels": ["level"]}
)


def check(dataset: Dataset, steps: Dataset, balls: Dataset) -> Evidence:
    """The orders of both errors, the law of the delay, and the speed and place of memorization."""
    step_beta, smaller = 0.1 * dataset.beta, 1e-2 * steps.step
    sharp, smooth = dataset.sel(example=SHARP), dataset.sel(example=SMOOTH)

    def worst(name: str, of: Callable[[Any, Any], Any], log: bool) -> float:
        """The largest error in units of `of`(step, beta); `log` is for the smooth penalties."""
        late = smooth[f"log_{name}"] if log else smooth[name]
        rows = [(sharp[name], of(0.1, dataset.beta)), (late, of(0.1, dataset.beta))]
        rows.append((steps[name], of(steps.step, 1e-2)))
        return max(float((errors / unit).max()) for errors, unit in rows)

    def law(name: str) -> list[float]:
        later = dataset.isel(beta=slice(1, None))
        return [slope(0.1 * later.beta, row) + 1 for row in later[name].values]

    f_error = at_most(worst("f", lambda s, b: s * b**2, log=False), BOUND)
    h_error = at_most(worst("h", lambda s, b: s * b, log=False), BOUND)
    h_right = at_most(worst("h", lambda s, b: b, log=True), BOUND)
    delay = within(max(law("delay"), key=abs), tolerance=0.05)
    decades = np.diff(balls.levels.values, axis=1)
    near = at_most((balls.way / balls.zero_within).max(), 1.0, 1e-3)
    both = {
        r"largest deviation of the exponent of the delay in step $\beta$ from -1": delay,
        "largest relative change of the steps per decade of $g$ during memorization": within(
            np.abs(decades[:, 1] / decades[:, 0] - 1).max(), tolerance=0.25
        ),
        r"largest distance of the memorized point over $2 \sqrt{g/\chi}$": near,
    }
    last = steps.sel(example=SHARP[0]).isel(step=-1)
    half = smooth.half_f.sel(example=SMOOTH[0]) / (0.1 * dataset.beta**2)
    reach = rf"$\beta$ {float(dataset.beta[0]):g} to {float(dataset.beta[-1]):g}"
    return Evidence(
        ran="; ".join(map(shown, dataset.example.values))
        + rf": steps 0.1 with {reach}, and $\beta$ 0.01 "
        rf"with steps 0.1 to $10^{{-4}}$; errors after {TIME:g}/(step $\beta$) steps",
        premises={
            f"{shown(name)}: $r$-CL at the start": (bool(holds), float(chi))
            for name, holds, chi in zip(balls.example.values, balls.holds, balls.chi, strict=True)
        },
        checks={
            r"largest $|f - f^*|/(\mathrm{step}\,\beta^2)$": f_error,
            r"largest $|h - h_g^*|/(\mathrm{step}\,\beta)$": h_error,
            **both,
        },
        corrected={
            r"largest $|f - f^*|/(\mathrm{step}\,\beta^2)$": f_error.control(
                worst("f", lambda s, b: s * b**2, log=True)
            ),
            r"largest $|h - h_g^*|/\beta$": h_right,
            **both,
        },
        correction=r"$h$ reaches $h_g^*$ only up to $O(\beta)$: at the minimiser of $f$ itself $h "
        r"- h_g^*$ is of order $-\beta$, however small the step is. "
        r"$\Theta(1/(\mathrm{step}\,\beta))$ steps suffice where $h$ has a kink at its least "
        r"interpolator ($\ell_1$, nuclear norm: finite time); where it is smooth there the "
        r"approach is exponential in step $\beta t$, and an error $O(\mathrm{step}\,\beta^2)$ "
        r"takes $\Theta(\log(1/(\mathrm{step}\,\beta))/(\mathrm{step}\,\beta))$ steps.",
        counterexample={
            "$h$": r"$g = (x + 2 y - 2)^2/2$, $h = |x| + |y|$, $h_g^* = 1$: descent ends at "
            rf"$y = 1 - \beta/4$; with step {float(last.step):g} and $\beta$ 0.01, $|h - h_g^*| = "
            f"{latex(float(last.h), '.4g')} = {float(last.h / (last.step * 1e-2)):.0f}"
            r"\,\mathrm{step}\,\beta$",
            "time": "the same $g$, $h = x^2 + y^2$, from (2, -1): $|f - "
            rf"f^*|/(\mathrm{{step}}\,\beta^2)$ after "
            rf"${TIME / 2:g}/(\mathrm{{step}}\,\beta)$ steps: "
            f"{listed(half, '.3g')} at step 0.1, {reach}",
        },
        controls={
            r"$h$ up to $O(\mathrm{step}\,\beta)$": h_error.control(
                worst("h", lambda s, b: s * b, log=True)
            ),
            r"$h$ up to $O(\beta^2)$": h_right.control(worst("h", lambda s, b: b**2, log=True)),
            "no logarithm for smooth penalties": f_error.control(
                (smooth.f / (0.1 * dataset.beta**2)).max()
            ),
            "a delay that scales like the time to memorize": delay.control(
                min(law("memorized"), key=abs)
            ),
            r"$\chi$ at the start in place of the least $\chi$ on the ball": near.control(
                (balls.way / balls.with_first_chi).max()
            ),
        },
        findings=[
            r"at the kinks $|f - f^*|/(\mathrm{step}\,\beta^2)$ settles at "
            + ", ".join(
                f"{float(one / (0.1 * dataset.beta[-1] ** 2)):.3g} ({shown(name)})"
                for name, one in zip(SHARP, sharp.f.isel(beta=-1), strict=True)
            )
            + r": the order step $\beta^2$ is sharp",
            r"from above, $h - h_g^*$ is $O(\mathrm{step}\,\beta)$ as printed, at most "
            rf"{worst('above', lambda s, b: s * b, log=True):.2f} step $\beta$ here; only the "
            r"shrinkage below $h_g^*$ is of order $\beta$",
        ],
        plots=[
            log_log(
                r"(a) time to generalize: like $1/(\mathrm{step}\,\beta)$",
                r"step $\beta$",
                "steps until $h$ is 0.02 above its least value",
                [(shown(n), step_beta, dataset.delay.sel(example=n)) for n in [*SHARP, *SMOOTH]],
            ),
            log_log(
                r"(b) remaining error of $h$: like $\beta$, for every step",
                r"step $\beta$",
                "$|h - h_g^*|$",
                [
                    (r"line, $\ell_1$: step 0.1, $\beta$ varies", step_beta, sharp.h[0]),
                    (r"line, $\ell_1$: $\beta$ 0.01, step varies", smaller, steps.h[0]),
                    (r"step $\beta$, the printed order", smaller, smaller, "dashed"),
                ],
            ),
        ],
    )


experiment = Experiment(
    "N-T21",
    statement=r"If $g$ is $r$-CL at the start, subgradient descent on $g + \beta h$ first goes "
    "exponentially fast to a zero of $g$ near the start, and within "
    r"$\Theta(1/(\mathrm{step}\,\beta))$ more steps $f$ reaches $f^*$ up to "
    r"$O(\mathrm{step}\,\beta^2)$ and $h$ reaches $h_g^* = \inf h$ where $g = 0$ up to "
    r"$O(\mathrm{step}\,\beta)$.",
    place=r"Grokking Beyond the $\ell_2$ norm, Theorem 2.1",
    study=(study, steps, balls),
    check=check,
    title=r"The penalty takes about $1/(\mathrm{step}\,\beta)$ steps and leaves an error of order "
    r"$\beta$",
    ours="the objectives, the steps and the strengths",
    seconds=4,
)
