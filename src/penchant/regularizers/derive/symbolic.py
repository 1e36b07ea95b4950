"""A user's map F as a sympy expression, and its flow F(w(s)) with w' = grad F(w) as a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.limits import Turns
from penchant.precision import double_precision
from penchant.regularizers.derive.reparametrization import Reparametrization

LONGEST = 24  # operations in an expression that is still integrated or simplified
# A route takes F and its argument symbols to (start symbols, s) -> F(w(s)) with w'(s) = grad F,
# and to the unit of s in Q (None if that is not known).
Flow = Callable[[list[Any], Any], Any]
Unit = Callable[[list[Any]], Any] | None
Route = Callable[[Any, list[Any]], tuple[Flow, Unit]]


class NotSymbolic(Exception):
    """The map or an inverse has no expression among those known here."""


def expression_of(line: Reparametrization, arguments: list[Any]) -> Any:
    """F as a sympy expression in `arguments`, read from the program that JAX traced."""
    import jax

    with double_precision():
        traced = jax.make_jaxpr(line.function)(*[np.float64(0.5)] * len(arguments))
    (result,) = evaluate(traced.jaxpr, traced.consts, arguments)
    return result


def evaluate(program: Any, constants: Any, arguments: list[Any]) -> list[Any]:
    known: dict[Any, Any] = dict(zip(program.constvars, map(number, constants), strict=True))
    known.update(zip(program.invars, arguments, strict=True))

    known_operations = operations()

    def read(atom: Any) -> Any:
        return number(atom.val) if hasattr(atom, "val") else known[atom]

    for equation in program.eqns:
        inputs = [read(atom) for atom in equation.invars]
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        if inner is not None:
            outputs = evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        elif (name := equation.primitive.name) == "integer_pow":
            outputs = [inputs[0] ** equation.params["y"]]
        elif name in known_operations:
            outputs = [known_operations[name](*inputs)]
        else:
            raise NotSymbolic(f"the map uses {name}")
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in program.outvars]


def number(value: Any) -> Any:
    """A constant of the program, exact where it is a short decimal."""
    import sympy

    if np.ndim(value):
        raise NotSymbolic("the map holds an array")
    exact = sympy.nsimplify(float(value), rational=True)
    return exact if exact.q < 10**6 else sympy.Float(float(value))


def operations() -> dict[str, Callable[..., Any]]:
    import sympy

    waves = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    named = (*waves, *(f"a{name}" for name in waves), "exp", "log", "sqrt")
    table: dict[str, Callable[..., Any]] = {name: getattr(sympy, name) for name in named}
    return table | {
        "add": lambda a, b: a + b,
        "add_any": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "neg": lambda a: -a,
        "pow": lambda a, b: a**b,
        "square": lambda a: a**2,
        "rsqrt": lambda a: 1 / sympy.sqrt(a),
        "exp2": lambda a: 2**a,
        "log1p": lambda a: sympy.log(1 + a),
        "expm1": lambda a: sympy.exp(a) - 1,
        "logistic": lambda a: 1 / (1 + sympy.exp(-a)),
        "convert_element_type": lambda a: a,
        "copy": lambda a: a,
    }


def solve_for(expression: Any, unknown: Any, target: Any) -> Any:
    """The value of `unknown` where `expression` equals `target`, peeling one operation at a time.

    It takes the principal branch; the caller compares with numbers.
    """
    import sympy

    turns = Turns(10_000, "the inversion of a formula")
    while expression != unknown:
        turns.take()
        holders = [part for part in expression.args if part.has(unknown)]
        if len(holders) != 1:
            raise NotSymbolic(f"{unknown} occurs more than once in {expression}")
        (inner,) = holders
        others = [part for part in expression.args if part is not inner]
        if expression.is_Add:
            target -= sympy.Add(*others)
        elif expression.is_Mul:
            target /= sympy.Mul(*others)
        elif isinstance(expression, sympy.exp):
            target = sympy.log(target)
        elif expression.is_Pow and inner is expression.base:
            target = target ** (1 / expression.exp)
        elif expression.is_Pow:
            target = sympy.log(target) / sympy.log(expression.base)
        elif expression.func in (sympy.sin, sympy.cos):
            target = (sympy.asin if expression.func is sympy.sin else sympy.acos)(target)
        elif hasattr(expression, "inverse"):
            target = expression.inverse()(target)
        else:
            raise NotSymbolic(f"the inverse of {expression.func} is not known")
        expression = inner
    return target


def through_predictor(F: Any, arguments: list[Any]) -> tuple[Flow, Unit]:
    """Solves db/ds = F'(w)^2 with the right side written in b = F(w)."""
    import sympy

    (w,) = arguments
    b = sympy.Symbol("b", positive=w.is_positive, real=True)
    speed = sympy.diff(F, w).subs(w, solve_for(F, w, b))
    rate = sympy.powdenest(sympy.expand(speed**2), force=True)
    dual = integral(1 / rate, b)

    def begin(start: list[Any]) -> Any:
        return dual.subs(b, F.subs(w, start[0]))

    def unit(start: list[Any]) -> Any:
        return natural_unit(dual, rate / b, b, begin(start))

    return lambda start, s: solve_for(dual, b, begin(start) + s), unit


def through_parameter(F: Any, arguments: list[Any]) -> tuple[Flow, Unit]:
    """Solves dw/ds = F'(w)."""
    import sympy

    (w,) = arguments
    dual = integral(1 / sympy.diff(F, w), w)

    def unit(start: list[Any]) -> Any:
        return natural_unit(dual, sympy.diff(F, w) ** 2 / F, w, dual.subs(w, start[0]))

    return lambda start, s: F.subs(w, solve_for(dual, w, dual.subs(w, start[0]) + s)), unit


def natural_unit(dual: Any, rate: Any, variable: Any, begin: Any) -> Any:
    """1/(time to infinity) if that is finite, else the exponential rate there."""
    import sympy

    end = sympy.limit(dual, variable, sympy.oo)
    return 1 / (end - begin) if end.is_finite else sympy.limit(rate, variable, sympy.oo)


def through_linear_flow(F: Any, arguments: list[Any]) -> tuple[Flow, Unit]:
    """Solves w' = A w for a quadratic form F = w^T A w/2 in few parameters."""
    import sympy

    matrix, w = sympy.hessian(F, arguments), sympy.Matrix(arguments)
    form = (w.T * matrix * w)[0] / 2
    if len(arguments) > 3 or matrix.free_symbols or sympy.expand(F - form) != 0:
        raise NotSymbolic("F is not a quadratic form in up to three parameters")

    def flow(start: list[Any], s: Any) -> Any:
        at = (matrix * s).exp() * sympy.Matrix(start)
        return F.subs(dict(zip(arguments, at, strict=True)), simultaneous=True)

    return flow, None


def integral(integrand: Any, variable: Any) -> Any:
    """An antiderivative, for integrands that sympy's rules settle at once."""
    import sympy
    from sympy.integrals.manualintegrate import manualintegrate

    integrand = sympy.powsimp(sympy.powdenest(sympy.factor(sympy.cancel(integrand)), force=True))
    below = sympy.expand(1 / integrand)
    a, c = below.coeff(variable, 2), below.coeff(variable, 0)
    if sympy.expand(below - a * variable**2 - c) == 0 and (a * c).is_negative:
        # an inverse hyperbolic function holds the variable once, the logarithms do not
        inverse = sympy.atanh if c.is_positive else sympy.acoth
        return inverse(variable * sympy.sqrt(-a / c)) / sympy.sqrt(-a * c) * sympy.sign(c)
    functions = {f.func for f in integrand.atoms(sympy.Function) if f.has(variable)}
    powers = [p for p in integrand.atoms(sympy.Pow) if p.base.is_Add and p.base.has(variable)]
    # sympy may search for minutes among quotients of functions and powers of sums
    slow = functions - {sympy.exp} or (functions and powers) or any(p.exp != -1 for p in powers)
    result = None
    if not slow and integrand.count_ops() <= LONGEST:
        result = manualintegrate(integrand, variable)
    if result is None or result.has(sympy.Integral):
        raise NotSymbolic(f"no short integral of {integrand}")
    return result


def tidy(expression: Any) -> Any:
    """The shortest of a few ways to write an expression, as far as they are found quickly."""
    import sympy
    from sympy.functions.elementary.trigonometric import (
        InverseTrigonometricFunction,
        TrigonometricFunction,
    )

    expression = sympy.powdenest(expression, force=True)
    ways = [expression, sympy.factor(expression)]
    trigonometric = expression.has(TrigonometricFunction, InverseTrigonometricFunction)
    if expression.count_ops() <= 2 * LONGEST and not trigonometric:
        ways.append(sympy.simplify(expression))
    best = min(ways, key=lambda way: way.count_ops())
    # (s - 1)^-3 reads better as -(1 - s)^-3
    return best.replace(
        lambda e: e.is_Pow and e.exp.is_Integer and e.base.is_Add and -1 in e.base.args,
        lambda e: (-1) ** (e.exp % 2) * sympy.Pow(-e.base, e.exp),
    )
