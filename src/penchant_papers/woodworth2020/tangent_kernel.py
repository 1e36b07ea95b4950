"""The tangent kernel at a scaled start, and the predictor it leads to when alpha is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant import (
    L2,
    DiagonalNet,
    Factorization,
    FunctionModel,
    ParameterFlow,
    Regression,
    Time,
    interpolate,
    train,
)
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_most,
    log_log,
    margin_of_mean,
    mean_within,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.measures import kernel_machine, tangent_kernel
from penchant.models import DeepFactorization, Model
from penchant.plotting import latex
from penchant.record import At
from penchant.stop import Loss
from penchant_papers.endpoints import endpoint
from penchant_papers.instances import by_instance, distance, random_instance, slope
from penchant_papers.woodworth2020.biased_starts import LEAST, biases, relu_biases

Function = Callable[[Any, Any], Any]
SAME = 1e-4  # relative distance of two functions that are the same


def relu_net(width: int, seed: int) -> tuple[Function, list[Array], int]:
    """A ReLU net of three layers without biases: f(params, x), its parameters, its homogeneity."""
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    start = [rng.normal(size=(4, width)), rng.normal(size=(width, width)), rng.normal(size=width)]

    def net(params: list[Any], x: Any) -> Any:
        hidden = jnp.maximum(x @ params[0], 0)
        return jnp.maximum(hidden @ params[1], 0) @ params[2]

    return net, start, 3


def kernels(scale: float, seed: int) -> list[tuple[int, Array, Array]]:
    """(D, kernel at scale w0, kernel at w0) of three diagonal nets and a ReLU net."""
    x = np.random.default_rng((seed, 3)).normal(size=(5, 4))
    triples: list[tuple[int, Array, Array]] = []
    for depth in (2, 3, 5):
        shape = np.array([0.7, -1.2, 1.5, 0.9])
        nets = [DiagonalNet(depth, alpha=a, shape=shape) for a in (scale, 1.0)]
        scaled, plain = (tangent_kernel(net, net.start(4), x) for net in nets)
        triples.append((depth, scaled, plain))
    relu, start, D = relu_net(8, seed)
    pair = (tangent_kernel(relu, [a * w for w in start], x) for a in (scale, 1.0))
    scaled, plain = (np.asarray(K) for K in pair)
    return [*triples, (D, scaled, plain)]


def homogeneity(scale: float, seed: int) -> dict[str, float]:
    """Worst deviation of K at scale w0 from scale^(2D-2) K_0, and from scale^(2D) K_0."""
    triples = kernels(scale, seed)
    return {
        name: max(distance(K, scale ** (2 * D - less) * K0) for D, K, K0 in triples)
        for name, less in (("off", 2), ("off_2D", 0))
    }


def conv_net(relu: bool = True, bias: float = 0.0) -> Callable[[list[Array], Array], Array]:
    """Two convolutions of width 3 along the input and a dense layer; `bias` is added to a layer."""

    def net(weights: list[Array], x: Array) -> Array:
        hidden = x[:, None, :]
        for kernel in weights[:2]:
            windows = np.lib.stride_tricks.sliding_window_view(hidden, 3, axis=2)
            hidden = np.einsum("ncpt,oct->nop", windows, kernel) + bias
            hidden = np.maximum(hidden, 0) if relu else hidden
        return hidden.reshape(len(x), -1) @ weights[2]

    return net


def outputs(model: Model, x: Array) -> Callable[[float], Array]:
    """F(a w) on x as a function of a, with w the start of a model."""
    return lambda a: model.predict(a * model.start(x.shape[1]), x)


def degrees(seed: int) -> dict[str, float]:
    """Worst relative deviation of F(c w) from c^D F(w) over nets of every kind the paper names.

    `off_less` is that from c^(D-1) F(w), the least of all nets, and `off_biased` that of a
    convolutional net whose units have biases that are not scaled.
    """
    rng = np.random.default_rng(seed)
    c, x = float(rng.choice([0.2, 0.6, 1.7, 4.0])), rng.normal(size=(6, 9))
    conv = [rng.normal(size=s) for s in ((4, 1, 3), (3, 4, 3), (15,))]
    dense, start, _ = relu_net(8, seed)
    cases: list[tuple[int, Callable[[float], Array]]] = [
        (3, lambda a: conv_net()([a * w for w in conv], x)),
        (3, lambda a: conv_net(relu=False)([a * w for w in conv], x)),
        (3, lambda a: np.asarray(dense([a * w for w in start], x[:, :4]))),
    ]
    for D, model in (
        (2, Factorization(4, alpha=1.0, seed=seed)),
        (4, DeepFactorization(4, 3, alpha=1.0, seed=seed)),
        (3, DiagonalNet(3, start=(rng.normal(size=9), rng.normal(size=9)))),
    ):
        cases.append((D, outputs(model, x)))
    off, less = zip(
        *([distance(F(c), c ** (D - e) * F(1.0)) for e in (0, 1)] for D, F in cases),
        strict=True,
    )
    odd = [conv_net(bias=0.3)([a * w for w in conv], x) for a in (c, 1.0)]
    return {
        "off": max(off),
        "off_less": min(less),
        "off_biased": distance(odd[0], c**3 * odd[1]),
    }


def constants(alpha: float, seed: int) -> dict[str, float]:
    """K of the depth-2 net against 8 and 4 alpha^2 <x,x'>; the affine model at its own start."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(6, 9))
    net = DiagonalNet(2, alpha=0.3)
    K = tangent_kernel(net, net.start(9), x)
    eight, four = (distance(K, c * 0.3**2 * x @ x.T) for c in (8, 4))
    x, w0 = rng.normal(size=(6, 4)), (rng.uniform(1, 2, 4), rng.uniform(0.3, 1, 4))
    scaled, plain = DiagonalNet(2, start=(alpha * w0[0], alpha * w0[1])), DiagonalNet(2, start=w0)
    at_start, at_w0 = (net.predict(net.start(4), x) for net in (scaled, plain))
    return {
        "eight": eight,
        "four": four,
        "bias_printed": distance(alpha**2 * at_start, at_start),
        "bias_meant": distance(alpha**2 * at_w0, at_start),
    }


def expansion(instance: int, seed: int) -> dict[str, float]:
    """The exponent of the remainder of eq. (2), of a ReLU net and of a diagonal net in turn."""
    rng = np.random.default_rng((seed, instance))
    x = rng.normal(size=(5, 4))
    relu, start, _ = relu_net(8, DRAWS * seed + instance)
    net: Any = FunctionModel(relu, start)
    if instance % 2:
        net = DiagonalNet(3, alpha=1.0, shape=rng.uniform(0.5, 1.5, 4))
    w = np.asarray(net.start(4))
    step = rng.normal(size=w.size)
    first, lengths = net.jacobian(w, x) @ step, np.array([3e-4, 3e-5])
    left = [
        np.abs(net.predict(w + h * step, x) - net.predict(w, x) - h * first).max() for h in lengths
    ]
    return {"exponent": slope(lengths, np.array(left)), **velocity(instance, seed)}


def velocity(instance: int, seed: int) -> dict[str, float]:
    """How far -2 K r is from the velocity of the outputs in the midst of training, relative.

    With the kernel K of that moment, and with that of the start.
    """
    p = random_instance(instance, seed, samples=(3, 5), dimension=(8, 12), log10_alpha=(-1, -0.5))
    model, problem = DiagonalNet(2, alpha=p.alpha), Regression(p.X, p.y)
    half = Loss(float(p.y @ p.y) / 4)
    t = float(train(model, problem, ParameterFlow(), stop=half).dataset.t[-1])
    times = t * np.array([1 - 1e-4, 1.0, 1 + 1e-4])
    flow, stop = ParameterFlow(rtol=1e-11), Time(times[-1])
    rows = train(model, problem, flow, stop=stop, record=At(times=times.tolist())).dataset
    w, clock = rows.parameters.values[-3:], rows.t.values[-3:]
    outputs = np.array([model.predict(v, p.X) for v in w])
    moved = (outputs[2] - outputs[0]) / (clock[2] - clock[0])
    kernels = (tangent_kernel(model, v, p.X) for v in (w[1], model.start(p.X.shape[1])))
    now, first = (distance(-2 * K @ (outputs[1] - p.y), moved) for K in kernels)
    return {"velocity": now, "start_velocity": first}


def cell(depth: int, place: int, seed: int) -> dict[str, float]:
    """Distance of the trained predictor to the kernel predictor of its start, and to plain l2."""
    p = random_instance(0, seed, samples=(4, 5), dimension=(12, 13))
    alpha = {2: np.geomspace(2, 12, 5), 3: np.geomspace(1.5, 4, 5)}[depth][place]
    model = DiagonalNet(depth, alpha=alpha, shape=p.shape)
    end = endpoint(p.X, p.y, alpha=alpha, depth=depth, shape=p.shape)
    kernel = kernel_machine(model, Regression(p.X, p.y))
    return {
        "alpha": alpha,
        "far": distance(end.beta, np.asarray(kernel.predictor)),
        "far_l2": distance(end.beta, interpolate(p.X, p.y, L2()).beta),
        "residual": end.residual,
    }


study = sized(
    "W-K", function=cell, arguments={"seed": 21}, grid={"depth": [2, 3], "place": [0, 1, 2, 3, 4]}
)
scales = sized(
    "W-K-scales", function=homogeneity, arguments={"seed": 1}, grid={"scale": [0.03, 0.4, 7.0]}
)
models = sized("W-K-models", function=degrees, seeds=20, tiny={"seeds": 5})
factors = sized("W-K-constants", function=constants, arguments={"alpha": 2.0, "seed": 2})

first_order = by_instance(
    "W-K-expansion", expansion, 20, tiny=4, printed=100, arguments={"seed": 3}
)


def check(
    dataset: Dataset,
    scales: Dataset,
    models: Dataset,
    biases: Dataset,
    relu_biases: Dataset,
    factors: Dataset,
    first_order: Dataset,
) -> Evidence:
    """Scaling and constants of the kernel, the bias term, and training at large alpha."""
    misfit, last = float(dataset.residual.max()), dataset.isel(place=-1)
    rows = {D: dataset.sel(depth=D) for D in (2, 3)}
    rates = {D: slope(row.alpha.values, row.far.values) for D, row in rows.items()}
    scaling = within(scales.off.max(), tolerance=1e-10)
    eight = within(factors.eight, tolerance=1e-12)
    near = within(last.far.max(), tolerance=1e-3)
    printed = float(factors.bias_printed)
    second = mean_within(first_order.exponent.values, 2.0, bias=0.05)
    speed = within(first_order.velocity.max(), tolerance=1e-5)
    homogeneous = within(models.off.max(), tolerance=1e-4)  # the dense net is in float32
    biased, large = biases.sel(alpha=16.0), biases.isel(alpha=-1)
    nearest = within(biased.far.max(), tolerance=1e-4)
    # kinks that cross a point change the function by less than the move of a unit, 1/alpha^2
    relu = relu_biases.sel(scale=1e4)
    nets, near_zero = relu.far.size, int((relu.far_zero < SAME).sum())
    relu_nearest = share_at_least(int((relu.far < SAME).sum()), nets, 0.5)
    # a net in which a kink does cross is far behind: the mean over the nets is that of logarithms
    products = np.log(relu_biases.far * relu_biases.scale).transpose("seed", ...).values
    bounded = at_most(
        max(np.exp(row.mean() + margin_of_mean(row)) for row in products.T), 10.0
    )  # as in Figure 6 (a, b)
    growing = np.log(relu.far_growing * relu.scale).values
    least = float(relu.output.min())
    return Evidence(
        ran="tangent kernels of diagonal nets $(D = 2, 3, 5)$ and, by automatic differentiation, "
        "of a ReLU net of depth 3; training in the parameters at five scales for $D = 2$ and 3; "
        f"eq. (2) at {first_order.sizes['instance']} random points and trainings; "
        f"{relu_biases.sizes['seed']} ReLU nets of two layers whose start has an output",
        checks={
            r"$K(\alpha w_0)$ against $\alpha^{2 D-2} K_0$": scaling,
            r"$K$ against $8 \alpha^2 \langle x,x'\rangle$": eight,
            r"distance of training at the largest $\alpha$ to the kernel predictor": near,
            "dense, convolutional, linear nets and factorizations: $F(c w)$ against $c^D F(w)$": (
                homogeneous
            ),
            r"bias of order one, $\alpha = 16$: distance to the interpolant nearest in the norm of "
            "the kernel": nearest,
            r"ReLU nets, output of order one at the start, $\alpha^2 = 10^4$: share at a distance "
            rf"below ${latex(SAME)}$ (0.999 lower limit)": relu_nearest,
            r"that distance times $\alpha^2$, geometric mean, $\alpha^2 = 10^2$ or $10^4$ "
            "(0.999 upper limit of the larger)": bounded,
            r"$D = 2$: exponent of that distance in $\alpha$": within(rates[2], -4.0, 0.2),
            r"$D = 3$: exponent of that distance in $\alpha$": within(rates[3], -6.0, 0.3),
            "eq. (2): exponent of the remainder in the length of the step, mean": second,
            "midst of training: distance of $-2 K r$, $K$ that of the moment, to the velocity of "
            "the outputs": speed,
        },
        proof={
            r"affine model at its start, bias term $\alpha^D f(w(0),x)$ as printed": within(
                printed, tolerance=1e-10
            )
        },
        corrected={
            r"affine model at its start, bias term $\alpha^D f(w_0,x)$": within(
                factors.bias_meant, tolerance=1e-10
            )
        },
        correction=r"the bias term of $f_K$ is $f(w(0),x) = \alpha^D f(w_0,x)$: the printed "
        r"$\alpha^D f(w(0),x)$ counts the scale twice",
        counterexample={
            r"$\alpha$": 2.0,
            "$D$": 2,
            "relative error of the printed affine model at $w(0)$": printed,
        },
        premises={
            "every trained endpoint interpolates": (misfit < 1e-8, misfit),
            "outputs of the ReLU nets at the start: least mean square": (least > LEAST, least),
        },
        controls={
            "$c^{D-1} F(w)$": homogeneous.control(models.off_less.min()),
            "convolutional nets with biases": homogeneous.control(models.off_biased.min()),
            "the least-norm predictor, as without the bias": nearest.control(
                biased.far_unbiased.min()
            ),
            r"$\alpha w_0$ with $F(w_0) \neq 0$, a bias of order $\alpha^2$": nearest.control(
                large.far_scaled.min()
            ),
            "ReLU nets: the interpolant nearest to 0 (0.999 upper limit)": relu_nearest.control(
                upper_share(near_zero, nets)
            ),
            r"ReLU nets with an output of order $\alpha^2$ at the start (0.999 lower "
            "limit)": bounded.control(np.exp(growing.mean() - margin_of_mean(growing))),
            "exponent $2 D$ in place of $2 D-2$": scaling.control(scales.off_2D.min()),
            r"$4 \alpha^2 \langle x,x'\rangle$": eight.control(factors.four),
            r"plain $\ell_2$ for a start with unequal entries": near.control(last.far_l2.min()),
            "eq. (2) with a remainder of first order": second.control(predicted=1.0),
            "the velocity with the kernel of the start (median)": speed.control(
                first_order.start_velocity.median()
            ),
        },
        plots=[
            log_log(
                "training approaches the kernel predictor of its start",
                r"$\alpha$",
                "relative distance",
                [
                    *((f"$D = {D}$", row.alpha, row.far) for D, row in rows.items()),
                    *(
                        (rf"$D = {D}$, plain $\ell_2$ (control)", row.alpha, row.far_l2, "dashed")
                        for D, row in rows.items()
                    ),
                ],
            )
        ],
    )


experiment = Experiment(
    "W-K",
    statement=r"Training follows the tangent features of each moment, to first order. The tangent "
    r"kernel at $\alpha w_0$ is $\alpha^{2 D-2} K_0$, which is $8 \alpha^2 "
    r"\langle x,x'\rangle$ for the depth-2 net, and for large $\alpha$ training ends at the "
    "minimum-norm predictor of this kernel or, if the start has an output of order one, at the "
    "interpolant nearest to it.",
    place="section 3; section 4 before Theorem 1",
    study=(study, scales, models, biases, relu_biases, factors, first_order),
    check=check,
    title="Training from a large start ends at the predictor of its tangent kernel",
    seconds=4,
)
