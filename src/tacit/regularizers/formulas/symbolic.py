"""A user's map as a sympy expression, and the inverse of expressions that hold one unknown once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.precision import double_precision
from tacit.regularizers.reparametrization import Reparametrization


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
    """The outputs of a traced program on sympy expressions."""
    known: dict[Any, Any] = dict(zip(program.constvars, map(number, constants), strict=True))
    known.update(zip(program.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return number(atom.val) if hasattr(atom, "val") else known[atom]

    for equation in program.eqns:
        inputs = [read(atom) for atom in equation.invars]
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        if inner is not None:
            outputs = evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        else:
            outputs = [apply(equation.primitive.name, equation.params, inputs)]
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in program.outvars]


def number(value: Any) -> Any:
    """A constant of the program, exact where it is a short decimal."""
    import sympy

    if np.ndim(value):
        raise NotSymbolic("the map holds an array")
    exact = sympy.nsimplify(float(value), rational=True)
    return exact if exact.q < 10**6 else sympy.Float(float(value))


def apply(name: str, parameters: dict[str, Any], inputs: list[Any]) -> Any:
    """One primitive operation of JAX."""
    if name == "integer_pow":
        return inputs[0] ** parameters["y"]
    operation = operations().get(name)
    if operation is None:
        raise NotSymbolic(f"the map uses {name}")
    return operation(*inputs)


def operations() -> dict[str, Callable[..., Any]]:
    """The primitives that are known as elementary functions."""
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

    while expression != unknown:
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
