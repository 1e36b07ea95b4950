"""The page of the benchmarks, and the lines of speed in the README, from benchmarks/RESULTS.md.

`python docs/website/benchmark_pages.py` writes the lines into the README.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
RATIO = re.compile(r"RATIO (?P<what>.+?): (?P<value>\S+) \(target (?P<target>.+?): (?P<met>.+?)\)")
RACE = re.compile(r"(.+?) / (?:ours|penchant)(.*)")  # the time of another way over ours
STORY = """To learn where training ends there are other ways: to train, to hand the same problem to
a general solver, or to write the same training in another library. Each bar is the time that such a
way took over the time that penchant took, in one run on the same machine.

![How many times longer each other way takes](speed.png)

- **Training.** Descent takes more steps with every decade by which the start shrinks, while a
  prediction takes none: the longer the training, the larger the ratio.
- **General solvers.** They solve for one scale at a time, and not for all of them; the ratios are
  over the scales that they solve.
- **The same training in eager PyTorch.** There penchant trains too, in compiled code.

The table has every comparison, also those that are no race, and says which targets were missed.
"""
# what the README says of the ratio of one comparison
SPEED = {
    ("regression_path", "gradient descent at 0.05 of its limit / ours"): "Where training from 100"
    " initial scales ends (100 samples, 1000 weights): {} times faster than compiled gradient"
    " descent at a twentieth of its largest stable step.",
    ("exp_trajectory", "normalized descent / ours, from smoothed margin 0.01"): "A classifier"
    " trained to a loss of $10^{{-4342945}}$: {} times faster than compiled normalized descent"
    " at the same error (extrapolated from its first steps).",
    (
        "watch",
        "PyTorch, dense: time, watched / plain",
    ): "A PyTorch loop with `penchant.watch` in it: {} times the time of the plain loop.",
}


@dataclass(frozen=True)
class Ratio:
    """One comparison of a benchmark."""

    section: str
    what: str
    value: str
    target: str
    met: str


def results() -> str:
    return (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")


def ratios(text: str) -> list[Ratio]:
    """Every comparison in the results, in their order."""
    found = []
    for part in text.split("\n## ")[1:]:
        section = part.partition("\n")[0]
        found += [Ratio(section, **match.groupdict()) for match in RATIO.finditer(part)]
    return found


def pages() -> dict[str, str]:
    """The page of the results: every comparison in one table, then the sections."""
    text = results()
    head, *sections = text.split("\n## ")
    machine = head.removeprefix("# Measured").strip()
    rows = [
        f"| [`{ratio.section}`](#{ratio.section}) | {ratio.what} |"
        f" {ratio.value} | {_signs(ratio.target)} | {ratio.met} |"
        for ratio in ratios(text)
    ]
    lines = [
        "# Benchmarks",
        "",
        "Each script measures both sides in one run. This page is made from"
        " `benchmarks/RESULTS.md`, which `python benchmarks/run_all.py --write` writes.",
        "",
        machine,
        "",
        STORY,
        "## Every comparison",
        "",
        "| benchmark | comparison | ratio | target | result |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *(f"## {_spaced(section)}\n" for section in sections),
        "```{toctree}\n:hidden:\n\nThe scripts <scripts>\nrobustness\n```",
        "",
    ]
    return {"benchmarks/index.md": "\n".join(lines)}


def races(text: str) -> list[tuple[str, float]]:
    """The comparisons with another way to compute the same, the largest ratio first."""
    found = []
    for ratio in ratios(text):
        match = RACE.fullmatch(ratio.what)
        if match and match[1] != "time":
            detail = match[2].strip(" ,")
            name = f"{ratio.section}: {match[1]}" + (f" ({detail})" if detail else "")
            found.append((name, float(ratio.value)))
    return sorted(found, key=lambda race: -race[1])


def chart() -> Any:
    """A bar for every rival: how many times longer it took."""
    from penchant.plotting import BLUE, sheet, styled

    names, values = zip(*races(results()), strict=True)
    with styled():
        figure, (axes,) = sheet(
            "How many times longer another way takes", "", [9.0], 0.34 * len(names) + 1.2
        )
        axes.barh(range(len(names)), values, color=BLUE, left=0.0)
        for place, value in enumerate(values):
            axes.text(value * 1.1, place, f"{value:,.0f}", va="center", fontsize=9)
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.invert_yaxis()
        axes.set(
            xscale="log",
            xlim=(1, 4 * max(values)),
            xlabel="time of the other way / time of penchant",
        )
        axes.grid(False, axis="y")
    return figure


def _signs(target: str) -> str:
    return target.replace(">= ", "≥\u00a0").replace("<= ", "≤\u00a0")


def _spaced(section: str) -> str:
    """The section with an empty line around its tables, and every comparison on its own line."""
    lines: list[str] = []
    for line in section.strip().splitlines():
        table, before = line.startswith("|"), bool(lines) and lines[-1].startswith("|")
        if lines and lines[-1] and (table != before or not table):
            lines.append("")
        lines.append(_bold(line))
    return "\n".join(lines) + "\n"


def _bold(line: str) -> str:
    found = RATIO.match(line)
    if not found:
        return line
    what, value = found["what"], found["value"]
    return f"**{what}: {value}** (target {found['target']}: {found['met']})"


def speed() -> str:
    """The lines of the README, a comparison each."""
    known = {(ratio.section, ratio.what): ratio.value for ratio in ratios(results())}
    return "\n".join(f"- {words.format(known[which])}" for which, words in SPEED.items())


def replaced(readme: str) -> str:
    """The README with the lines between the two markers made again."""
    before, _, rest = readme.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"benchmarks: the README must hold {BEGIN} and {END} once, in this order")
    return f"{before}{BEGIN}\n{speed()}\n{END}{after}"


if __name__ == "__main__":
    file = ROOT / "README.md"
    file.write_text(replaced(file.read_text(encoding="utf-8")), encoding="utf-8")
