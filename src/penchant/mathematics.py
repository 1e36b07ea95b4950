r"""Mathematics is written once, as LaTeX between dollars; here are the ways in which it is shown.

matplotlib draws such a text as it is, `in_terminal` writes it in letters, `mathml` is for browsers.
As in Markdown, a formula begins at a dollar before a sign and ends at one after a sign, so prices
are no formulas, and \$ is a dollar.
"""

from __future__ import annotations

import functools
import re
import textwrap
from xml.etree import ElementTree

from penchant.arguments import integer
from penchant.arguments import text as require_text
from penchant.door import door

FORMULA = re.compile(r"(?<!\\)\$(?!\s)((?:[^$\\]|\\.)+?)(?<!\s)\$(?!\d)")
WORD = re.compile(
    r"\\(?:operatorname|mathrm)\{([^{}]*)\}"
    r"|\\(log|exp|sinh|cosh|tanh|sin|cos|max|min|inf|det)(?![A-Za-z])"
)
ROOT = re.compile(r"\\sqrt\{(?:(\w|\\[a-z]+)|([^{}]*))\}")
SCRIPT = re.compile(r"([_^])\{([^{}]*)\}")
NAME = re.compile("<mi>[a-z]{3,}</mi>")  # as latex2mathml writes \log
BRACKETS = {r"\langle ": "⟨", r"\langle": "⟨", r"\rangle": "⟩", r"\,": " "}
FIRST_PRIVATE, OPEN = 0xE000, "\uf8ff"  # letters that no text has


def latex(value: float, form: str = "g") -> str:
    r"""A number for the inside of a formula: 2.5 \times 10^{-6} where the format says 2.5e-06."""
    try:
        front, mark, exponent = format(value, form).partition("e")
    except (TypeError, ValueError):
        rule = f"value must be a number that the format {form!r} takes"
        raise ValueError(f"latex: {rule}, got {value!r:.80}") from None
    if not mark:
        return front.replace("inf", r"\infty")
    times = "" if float(front) == 1 else rf"{front} \times "
    return rf"{times}10^{{{int(exponent)}}}"


@door
def in_terminal(text: str) -> str:
    """The text with its formulas in the letters of a terminal: α², ℓ₁, w₊², 10⁻⁵."""
    parts = FORMULA.split(require_text("text", text))
    shown = (_letters(part) if k % 2 else part.replace(r"\$", "$") for k, part in enumerate(parts))
    return "".join(shown)


@functools.cache
def _letters(formula: str) -> str:
    import unicodeit

    words = WORD.sub(r"\1\2", formula)  # unicodeit reads \log as \l, a Polish letter
    for command, sign in BRACKETS.items():
        words = words.replace(command, sign)
    flat = ROOT.sub(_root, SCRIPT.sub(_script, ROOT.sub(_root, words)))
    shown = str(unicodeit.replace(flat)).replace(OPEN, "(")
    return shown.replace("_∞", "∞")  # there is no small one


def _root(match: re.Match[str]) -> str:
    return f"√{match[1]}" if match[1] else f"√({match[2]})"


def _script(match: re.Match[str]) -> str:
    """An index or a power, in small letters if there is one for each of its signs."""
    import unicodeit

    small = str(unicodeit.replace(match[0]))
    large = f"{match[1]}{OPEN}{match[2]})"  # a bracket that unicodeit does not make small
    return large if set(small) & set("_^{}") else small


def mathml(formula: str, display: str = "inline") -> str:
    """LaTeX without its dollars as MathML, which browsers show without a script or a network."""
    from latex2mathml.converter import convert

    bar = '<mo stretchy="false"{}>&#x0007C;</mo>'  # of a norm: no space beside it
    spaced = bar.format(' lspace="0" rspace="0"')
    signs = formula.replace("<", r"\lt ").replace(">", r"\gt ")  # which \text would not escape
    markup = str(convert(signs, display=display)).replace(bar.format(""), spaced)
    markup = markup.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")  # as in every HTML
    markup = re.sub(r"<mo>(?=[a-z]{3})", '<mo lspace="0">', markup)  # argmin, after a word
    return _spaced(markup) if NAME.search(markup) else markup


def _spaced(markup: str) -> str:
    """The markup with a thin space between the name of a function and a letter: N log d."""
    root = ElementTree.fromstring(markup)
    for row in root.iter():
        parts = list(row) if row.tag in ("math", "mrow") else []
        for place in range(len(parts) - 1, 0, -1):
            pair = parts[place - 1 : place + 1]
            if any(map(_is_name, pair)) and not {part.tag for part in pair} & {"mo", "mspace"}:
                row.insert(place, ElementTree.Element("mspace", width="0.167em"))
    return ElementTree.tostring(root, encoding="unicode")


def _is_name(part: ElementTree.Element) -> bool:
    """Whether this is log, or log with an index or a power."""
    base = part[0] if part.tag in ("msub", "msup", "msubsup") else part
    return base.tag == "mi" and len(base.text or "") > 2


@door
def wrap(text: str, width: int) -> str:
    """The text in lines of about `width` letters, none of which ends within a formula."""
    require_text("text", text)
    width = integer("width", width, least=1)
    formulas: list[str] = []

    def hide(match: re.Match[str]) -> str:
        formulas.append(match[0])
        return chr(FIRST_PRIVATE + len(formulas) - 1) * len(in_terminal(match[0]))

    hidden = FORMULA.sub(hide, text)
    last = chr(FIRST_PRIVATE + len(formulas))
    lines = textwrap.fill(hidden, width, break_long_words=False)
    runs = rf"(?!{last})([{chr(FIRST_PRIVATE)}-{last}])\1*"
    return re.sub(runs, lambda run: formulas[ord(run[1]) - FIRST_PRIVATE], lines)


def escape(text: str) -> str:
    """The text for matplotlib: dollars that are no formulas, or wrong ones, become signs."""
    parts = FORMULA.split(text)
    return "".join(
        f"${part}$" if k % 2 and _can_be_drawn(part) else _signs(f"${part}$" if k % 2 else part)
        for k, part in enumerate(parts)
    )


def _signs(text: str) -> str:
    return re.sub(r"(?<!\\)\$", r"\\$", text)


@functools.cache
def _can_be_drawn(formula: str) -> bool:
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(f"${formula}$")
    except ValueError:
        return False
    return True
