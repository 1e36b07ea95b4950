"""The formulas in plain text, found and written as LaTeX.

The docs write mathematics as plain text: beta_i = 2 alpha^2 sinh(s_i). `split` finds the formulas
in a sentence and writes them as LaTeX.
"""

import re
from dataclasses import dataclass
from typing import Any

LETTERS = (
    "alpha beta gamma delta epsilon eta theta kappa lambda mu nu rho sigma tau phi chi pi psi omega"
    " Lambda Sigma Delta"
)
GREEK = {**{name: rf"\{name}" for name in LETTERS.split()}, "eps": r"\epsilon"}
UPRIGHT = (
    *("log", "exp", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "artanh", "sin", "cos", "max"),
    *("min", "argmin", "argmax", "sign", "softmax", "diag", "relu", "prox", "rank", "trace", "vec"),
)
WORDS = {
    **GREEK,
    **{name: rf"\operatorname{{{name}}}" for name in UPRIGHT},
    **{f"d{one}": rf"d{GREEK.get(one, one)}" for one in ("t", "s", "g", "u", "L", "tau", "beta")},
    **{"grad": r"\nabla"},
    **{name: rf"{{\ell_{{{name[1]}}}}}" for name in ("l1", "l2")},
    **{name: f"{{{name[0]}_{{{name[1]}}}}}" for name in ("t1", "t2", "w0")},
}
SIGNS = {
    **{"−": "-", "±": r"\pm", "∓": r"\mp", "×": r"\times", "·": r"\cdot", "∞": r"\infty"},
    **{"<=": r"\le", ">=": r"\ge", "->": r"\to", "≤": r"\le", "≥": r"\ge", "≠": r"\ne"},
    **{"→": r"\to", "≈": r"\approx", "∈": r"\in", "Σ": r"\sum", "sum": r"\sum", "∫": r"\int"},
    **{"⟨": r"\langle ", "⟩": r"\rangle ", "½": r"\tfrac{1}{2}"},
}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ", "0123456789-+T", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
NOT_GREEK = rf"(?!sum_[a-z]\b)(?!(?:{'|'.join(GREEK)})_)"
NAME = "A-Za-zÀ-ɏ"
SPLIT = re.compile(
    rf"""
    (?P<word>   \w+\*\*\w+                                  # alpha**depth is code
              | \b[A-Z]\.(?=\s[A-Z])                        # the D. of Jason D. Lee
              | (?<=[a-z]\s)x(?=\s[a-z]{{2}})               # samples x features
              | [A-Za-z]\d+_[a-z]{{3,}}\w*                  # l1_endpoint
              | {NOT_GREEK}[A-Za-z]{{2,}}\d*_\w+            # max_margin
              | [A-Za-z]\w*_[A-Za-z0-9]*_\w*
              | [A-Za-z]+(?:-[A-Za-z0-9]+)+\b               # W-F5, one-hot
              | \w+['’]\w+ | \w+://\S+ | \w+\.\w+\.\w+
              | \b[WMLN][ ]\d+\b(?![ ]?[=<>≤≥])             # theorem 1 of source W
              | \b(?:sign|rank|trace|vec|max|min|exp|prox)\b(?!\() )
  | (?P<number> (?<![\w.]) \d+(?:,\d{{3}})*(?:\.\d+)? (?: e[+-]?\d+ )? (?![A-Za-z_]) )
  | (?P<signed> (?<![A-Za-z]) [a-z] (?: [+-] (?= [²³^\s,.;:)/|*] | $ ) | ± ) )
  | (?P<power>  \^ (?: [-−]?(?:\d+(?:,\d{{3}})*(?:/\d+)?|[A-Za-z]+)
                     | \([^()]{{1,24}}\) | \{{[^{{}}]*\}} )
              | [⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ]+ | [₀₁₂₃₄₅₆₇₈₉]+ )
  | (?P<index>  _ (?: \{{[^{{}}]*\}} | [A-Za-z0-9]+ ) )
  | (?P<star>   (?<=[A-Za-z0-9]) \* (?![A-Za-z0-9*]) )
  | (?P<prime>  (?<=[A-Za-z0-9]) ' (?![A-Za-z]) )
  | (?P<relation> <= | >= | -> | [=<>≤≥≠≈→∈] )
  | (?P<sign>   sum(?=_[a-z]\b) | [+−±∓×·/Σ∫√½∞]
              | (?<=\s)-(?=[\s\d]) | (?<=[\w)])-(?=\d) )
  | (?P<name>   (?<![{NAME}0-9]) (?: [{NAME}]\u0304? (?![{NAME}0-9]) | [{NAME}]+\d? (?![{NAME}]) ) )
  | (?P<fence>  [()\[\]|⟨⟩] )
  | (?P<comma>  ,[ ]? )
  | (?P<space>  [ ]{{1,2}} )
    """,
    re.VERBOSE,
)
OPEN, CLOSE = "([⟨", ")]⟩"
SOURCES = {"W", "M", "L", "N"}  # alone these are papers more often than quantities


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def mathematical(self) -> bool:
        if self.kind == "name":
            return self.text in WORDS or len(self.text.replace("\u0304", "")) == 1
        return self.kind not in ("word", "other")

    @property
    def latex(self) -> str:
        text = self.text
        if self.kind == "number":
            return _number(text)
        if self.kind == "signed":
            return f"{text[0]}_{{{SIGNS.get(text[1], text[1])}}}"
        if self.kind == "power" and text[0] in RAISED:
            return f"^{{{''.join(RAISED[c] for c in text)}}}"
        if self.kind == "power" and text[0] in LOWERED:
            return f"_{{{''.join(LOWERED[c] for c in text)}}}"
        if self.kind in ("power", "index"):
            return f"{text[0]}{{{_inner(text[1:])}}}"
        if self.kind == "star":
            return "^{*}"
        if self.kind == "name" and "\u0304" in text:
            return rf"\bar{{{text[0]}}}"
        if self.kind in ("sign", "relation", "fence"):
            return SIGNS.get(text, text)
        if self.kind == "comma":
            return r",\,"
        return WORDS.get(text, {"â": r"\hat{a}", "l": r"\ell "}.get(text, text))


def _number(text: str) -> str:
    base, mark, power = text.partition("e")
    if not mark:
        return base.replace(",", "{,}")
    times = "" if base == "1" else rf"{base} \times "
    return rf"{times}10^{{{int(power)}}}"


def _inner(text: str) -> str:
    """What stands in a power or an index: a formula whatever words are in it."""
    inside = text[1:-1] if text[:1] in "({" else text
    inside = re.sub(r"(?<=\d)(?=[A-Za-z])", " ", inside.replace("-", "−"))
    return _latex([token for token in tokens_of(inside) if token.kind != "space"])


def _latex(run: list[Token]) -> str:
    """The tokens as one formula; a root covers the bracket or the symbol after it."""
    parts: list[str] = []
    k = 0
    while k < len(run):
        end = k + 1
        if run[k].text == "√" and end < len(run):
            end = _group(run, end)
            inside = run[k + 1 : end]
            if inside[0].text == "(" and inside[-1].text == ")":
                inside = inside[1:-1]
            parts.append(rf"\sqrt{{{_latex(inside)}}}")
        else:
            parts.append(run[k].latex if run[k].mathematical else _words(run[k].text))
        k = end
    return _joined(parts)


def _group(run: list[Token], k: int) -> int:
    """Where the bracket or the symbol ends that begins at place k."""
    depth = 0
    for end in range(k, len(run)):
        depth += (run[end].text in OPEN) - (run[end].text in CLOSE)
        after = run[end + 1].kind if end + 1 < len(run) else ""
        if depth <= 0 and after not in ("power", "index"):
            return end + 1
    return len(run)


def _words(text: str) -> str:
    """A word within a formula: two letters are two symbols, more are a name."""
    return text if len(text) <= 2 else rf"\mathrm{{{text}}}\,"


def _joined(parts: Any) -> str:
    """LaTeX side by side, with a space where a command would run into a letter."""
    found = ""
    for part in parts:
        gap = re.search(r"\\[A-Za-z]+$", found) and part[:1].isalpha()
        found += f" {part}" if gap else part
    return found


def tokens_of(text: str) -> list[Token]:
    """The text cut into tokens that cover all of it."""
    found, at = [], 0
    for match in SPLIT.finditer(text):
        if match.start() > at:
            found.append(Token("other", text[at : match.start()], at, match.start()))
        found.append(Token(str(match.lastgroup), match[0], *match.span()))
        at = match.end()
    return [*found, Token("other", text[at:], at, len(text))] if at < len(text) else found


def split(text: str) -> list[tuple[bool, str]]:
    """(False, plain text) and (True, LaTeX) by turns, in the order of the text."""
    text = re.sub(r"<([^<>=]{1,30},[^<>=]{1,30})>", r"⟨\1⟩", text)
    parts: list[tuple[bool, str]] = []
    at = 0
    for run in _runs(tokens_of(text)):
        start, end = run[0].start, run[-1].end
        latex = _latex([token for token in run if token.kind != "space"])
        parts += [(False, text[at:start]), (True, latex)]
        at = end
    return [part for part in [*parts, (False, text[at:])] if part[1]]


def _runs(tokens: list[Token]) -> list[list[Token]]:
    """The maximal sequences of tokens that are formulas."""
    found: list[list[Token]] = []
    run: list[Token] = []
    for k, token in enumerate(tokens):
        if token.mathematical and not _article(tokens, k):
            run.append(token)
        else:
            found += _formulas(run)
            run = []
    return found + _formulas(run)


def _article(tokens: list[Token], k: int) -> bool:
    """True for an a, A or I that is a word: no operator stands beside it."""
    if tokens[k].text not in ("a", "A", "I"):
        return False
    after = next((t for t in tokens[k + 1 :] if t.kind != "space"), None)
    tight = tokens[k + 1].kind in ("power", "index", "star", "prime") if k + 1 < len(tokens) else 0
    return not (tight or (after and after.kind in ("relation", "sign")))


def _formulas(run: list[Token]) -> list[list[Token]]:
    """The run without loose brackets and spaces at its ends, if it is a formula at all."""
    for cut in _loose(run) or _between(run):
        return _formulas(run[:cut]) + _formulas(run[cut + 1 :])
    while run and (run[0].kind in ("space", "relation", "power", "index") or run[0].text in "/·×+"):
        run = run[1:]
    while run and (run[-1].kind in ("space", "relation", "sign") or run[-1].text in UPRIGHT):
        run = run[:-1]
    return [run] if run and _is_formula(run) else []


def _loose(run: list[Token]) -> list[int]:
    """The place of the first bracket without its partner."""
    stack: list[int] = []
    bars: list[int] = []
    for k, token in enumerate(run):
        if token.text in OPEN and token.kind == "fence":
            stack.append(k)
        elif token.text in CLOSE and token.kind == "fence":
            if not stack:
                return [k]
            stack.pop()
        elif token.text == "|":
            bars.append(k)
    return (stack or (bars[-1:] if len(bars) % 2 else []))[:1]


def _between(run: list[Token]) -> list[int]:
    """The place of the first comma outside of all brackets: it belongs to the sentence."""
    depth = 0
    for k, token in enumerate(run):
        depth += (token.text in OPEN) - (token.text in CLOSE)
        if token.kind == "comma" and not depth:
            return [k]
    return []


def _is_formula(run: list[Token]) -> bool:
    kinds = {token.kind for token in run}
    names = [token.text for token in run if token.kind == "name"]
    if kinds & {"signed", "power", "index", "star"}:
        return any(token.kind in ("name", "signed", "number") for token in run)
    if any(name in GREEK or name in ("l1", "l2", "t1", "t2", "w0") for name in names):
        return True
    if any(token.kind == "number" and "e" in token.text for token in run):
        return True
    if kinds & {"relation", "sign"} and names:
        return True
    if any(token.text in "|⟨" for token in run) and names:
        return True
    solid = [token for token in run if token.kind != "space"]
    return len(solid) == 1 and len(names) == 1 and names[0] not in SOURCES | {"a", "A", "I"}
