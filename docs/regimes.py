"""Generate the table of regimes in docs/theory.md: `python docs/regimes.py FOLDER`.

It trains the nets of `tacit verify watch-regime --full` and their twins; cells that are in FOLDER
are not computed again.
"""

import itertools
import sys
from pathlib import Path

from tacit.papers.experiment import Setting
from tacit.papers.watch.regimes import experiment, held_out
from tacit.papers.watch.rules import BANDS, RULES, called
from tacit.report.write import write_whole
from tacit.watch.regime import KINDS

PAGE = Path(__file__).resolve().parent / "theory.md"
BEGIN, END = "<!-- regimes: begin -->", "<!-- regimes: end -->"
SHOWN = ("the watch", "the kernel not centred")


def band(low: float, high: float) -> str:
    return f"{low:g} to {high:g}" if high < float("inf") else f"above {low:g}"


def table(runs: list[dict]) -> str:
    """Counts of runs by the distance of their twin, and by what two rules call them."""
    rules = [called(runs, RULES[name]).table() for name in SHOWN]
    lines = [["distance of the twin", *(f"{name}: {kind}" for name in SHOWN for kind in KINDS)]]
    lines += [["---", *["---:"] * (len(SHOWN) * len(KINDS))]]
    for edges, *rows in zip(itertools.pairwise(BANDS), *rules, strict=True):
        lines.append([band(*edges), *(str(count or "") for row in rows for count in row)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced(text: str, found: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{found}\n{END}{after}"


if __name__ == "__main__":
    (dataset,) = experiment.data(Setting("full", Path(sys.argv[1])))
    runs = [run for run in held_out(dataset) if run["learns"]]
    write_whole(PAGE, replaced(PAGE.read_text(encoding="utf-8"), table(runs)))
    evidence = experiment.evidence([dataset])
    print(*(f"{check.name}: {check.sentence}" for check in evidence.checks), sep="\n")
    print(*evidence.findings, sep="\n")
