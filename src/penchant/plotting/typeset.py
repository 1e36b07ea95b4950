"""Plain mathematics, as titles and labels are written, typeset: alpha^2 k, l1, t2, 1e-5, |a - a*|.

Titles and statements are written plainly. Pictures show them after `typeset`, so that they
look like the axes; terminals show them after `in_letters`. Foreign texts are safe: a $ in them does
not begin a formula.
"""

from __future__ import annotations

import re

_GREEK = "alpha|beta|gamma|delta|epsilon|eps|eta|theta|kappa|lambda|mu|nu|rho|sigma|tau|phi"
GREEK = frozenset(_GREEK.split("|"))
LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"},
    **{"epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ"},
    **{"nu": "ν", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "ell": "ℓ", "infty": "∞"},
    **{"times": "×", "mathrm": "", ",": " "},
}
HIGH = str.maketrans("0123456789+-=()niT*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀ*")
LOW = str.maketrans("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
SIGNS = {"<=": "≤", ">=": "≥", "->": "→"}
START, END = r"(?<![A-Za-z0-9_.\\])", r"(?![A-Za-z0-9_])"
INDEX = r"(?:_([A-Za-z0-9]+))?"
POWER = rf"(?:\^(-?(?:[A-Za-z]+|\d+(?:/\d+)?){END}|\([^()$|]{{1,16}}\)))?"  # 2, -1/2, (D/2)
NUMBER = re.compile(rf"{START}(\d+(?:\.\d+)?)e([+-]?\d+){END}")  # 1e-05
NORM = re.compile(r"\|([^|$]+)\|" + INDEX + POWER)  # |a - a*|^2
NAMED = re.compile(rf"{START}([lt])([12](?:/[\dD]+)?|_inf){END}")  # l1, l2/3, l_inf, t2
STARRED = re.compile(rf"{START}([A-Za-z])(?:\*|_hat{END})")  # a*, a_hat
SCRIPTED = re.compile(rf"{START}({_GREEK}|[A-Za-z]|\d+){INDEX}{POWER}{END}")  # alpha^2
CLOSED = re.compile(rf"(\)){INDEX}{POWER}")  # (1 + x)^2
SIGNED = re.compile(rf"{START}([a-z])([+-])\^([A-Za-z0-9]+){END}")  # w+^L
BESIDE = re.compile(r"\$ ([B-HJ-Zb-z])(?![A-Za-z0-9_'.(])")  # the k of alpha^2 k
FORMULA = re.compile(r"((?<!\\)\$.+?(?<!\\)\$)")
HAT = re.compile(r"\\hat (.)")
COMMAND = re.compile(r"\\([A-Za-z]+|,) ?")
SCRIPT = re.compile(r"([_^])(?:\{([^{}]*)\}|(.))")


def typeset(text: str, bold: bool = False) -> str:
    """The text with its mathematics between dollars, for matplotlib; lines stay lines."""
    result = text.replace("$", r"\$")
    for sign, better in SIGNS.items():
        result = result.replace(sign, better)
    for pattern, write in RULES:
        parts = FORMULA.split(result)  # what is a formula already stays one
        result = "".join(
            part if k % 2 else pattern.sub(write, part) for k, part in enumerate(parts)
        )
    result = BESIDE.sub(r"\\,\1$", result)
    return FORMULA.sub(_bold, result) if bold else result


def in_letters(text: str) -> str:
    """The text with its mathematics in the letters of a terminal: α², ℓ₁, w₊², 10⁻⁵."""
    parts = FORMULA.split(typeset(text))
    shown = (_letters(part[1:-1]) if k % 2 else part for k, part in enumerate(parts))
    return "".join(shown).replace(r"\$", "$")


def _letters(formula: str) -> str:
    hatted = HAT.sub("\\1\u0302", formula)
    plain = COMMAND.sub(lambda found: LETTERS.get(found[1], found[1]), hatted)
    return SCRIPT.sub(_raised, plain).replace("{", "").replace("}", "")


def _raised(found: re.Match[str]) -> str:
    """An index or a power, small if every sign of it can be."""
    sign, inside = found[1], (found[2] or found[3] or "")
    table = HIGH if sign == "^" else LOW
    if inside == "∞":  # there is no small one, and l_inf is read without
        return inside
    if all(ord(letter) in table for letter in inside):
        return inside.translate(table)
    return f"{sign}({inside})" if len(inside) > 1 else f"{sign}{inside}"


def _bold(found: re.Match[str]) -> str:
    return rf"$\mathbf{{{found[1][1:-1]}}}$"


def _number(found: re.Match[str]) -> str:
    times = "" if float(found[1]) == 1 else rf"{found[1]} \times "
    return rf"${times}10^{{{int(found[2])}}}$"


def _norm(found: re.Match[str]) -> str:
    """A norm as one formula, unless there are words in it."""
    words = re.findall("[A-Za-z]+", found[1].replace("_hat", ""))
    if any(len(word) > 1 and word not in GREEK for word in words):
        return found[0]
    inside = typeset(found[1]).replace("$", "")
    return rf"$|{inside}|{_scripts(found[2], found[3])}$"


def _named(found: re.Match[str]) -> str:
    index = r"\infty" if found[2] == "_inf" else found[2]
    return rf"$\ell_{{{index}}}$" if found[1] == "l" else f"$t_{{{index}}}$"


def _starred(found: re.Match[str]) -> str:
    return rf"${found[1]}^*$" if found[0].endswith("*") else rf"$\hat {found[1]}$"


def _scripted(found: re.Match[str]) -> str:
    """A Greek letter, or anything with an index or a power."""
    base, index, power = found.groups()
    if not (index or power or base in GREEK):
        return found[0]
    return f"${_symbol(base)}{_scripts(index, power)}$"


def _signed(found: re.Match[str]) -> str:
    return f"${found[1]}_{found[2]}^{{{found[3]}}}$"


def _scripts(index: str | None, power: str | None) -> str:
    below = f"_{{{_symbol(index)}}}" if index else ""
    if not power:
        return below
    above = typeset(power[1:-1]).replace("$", "") if power.startswith("(") else power
    return f"{below}^{{{above}}}"


def _symbol(name: str) -> str:
    """A name as a formula has it: Greek by its letter, words upright."""
    if name in GREEK or name == "inf":
        return {"eps": r"\epsilon", "inf": r"\infty"}.get(name, rf"\{name}")
    return rf"\mathrm{{{name}}}" if len(name) > 1 and name.isalpha() else name


RULES = (
    (NUMBER, _number),
    (NORM, _norm),
    (NAMED, _named),
    (STARRED, _starred),
    (SIGNED, _signed),
    (SCRIPTED, _scripted),
    (CLOSED, _scripted),
)
