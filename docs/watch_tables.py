"""Generate the tables of regimes and forecasts in docs/theory/your_network.md at the printed size.

`python docs/watch_tables.py FOLDER` trains the nets of `penchant verify watch-regime --size
printed` and those of the league of forecasts; cells that are in FOLDER are not computed again.
`python docs/watch_tables.py FOLDER watch-forecast` makes one.
"""

import datetime
import itertools
import math
import sys
from pathlib import Path

import penchant
from penchant.lab import Setting, all_claims
from penchant.lab.writing import write_text
from penchant.watch import REGIMES
from penchant_papers.probe.forecast_rules import Score
from penchant_papers.probe.forecasts import league, recorded, scores
from penchant_papers.probe.regimes import held_out
from penchant_papers.probe.rules import BANDS, RULES, called

PAGE = Path(__file__).resolve().parent / "theory" / "your_network.md"
SHOWN = ("the watch", "the kernel not centred")


def lines(*rows: list[str], left: int = 1) -> str:
    """A table of Markdown; all columns but the first ones are numbers."""
    head, *rest = rows
    marks = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rest))


def band(low: float, high: float) -> str:
    return f"{low:g} to {high:g}" if high < float("inf") else f"above {low:g}"


def regimes(dataset) -> tuple[str, int]:
    """Counts of runs by the distance of their twin, and by what two rules call them."""
    runs = [run for run in held_out(dataset) if run["learns"]]
    rules = [called(runs, RULES[name]).table() for name in SHOWN]
    head = ["distance of the twin", *(f"{name}: {kind}" for name in SHOWN for kind in REGIMES)]
    rows = [
        [band(*edges), *(str(count or "") for row in counts for count in row)]
        for edges, *counts in zip(itertools.pairwise(BANDS), *rules, strict=True)
    ]
    return lines(head, *rows), len(runs)


def forecasts(dataset) -> tuple[str, int]:
    """A row for every rule and every time at which it is asked."""
    head = ["rule", r"asked at $t_{\mathrm{mem}}$ times", "mean error", "median error"]
    head += ["jump in the interval", "its upper end over its lower", "forecasts", "false alarms"]
    runs = recorded(dataset)
    rows = [
        [name, f"{factor:g}", *shown(found)]
        for name, by in scores(runs).items()
        for factor, found in by.items()
    ]
    return lines(head, *rows), len(runs)


def shown(found: Score) -> list[str]:
    shares = (found.error, found.median, found.coverage)
    counts = (len(found.pairs), found.asked), (found.alarms, found.quiet)
    texts = ["" if math.isnan(share) else f"{share:.0%}" for share in shares]
    texts.append("" if math.isnan(found.width) else f"{found.width:.1f}")
    return [*texts, *(f"{part} of {whole}" for part, whole in counts)]


TABLES = {"watch-regime": regimes, "watch-forecast": forecasts}


def replaced(text: str, name: str, found: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{found}\n{end}{after}"


def generate(name: str, folder: Path) -> None:
    experiment = all_claims()[name]
    if name == "watch-forecast":
        dataset = penchant.run(league.at(), folder)
    else:
        (dataset,) = experiment.data(Setting("printed", folder))
    table, runs = TABLES[name](dataset)
    found = f"{table}\n\n{runs} runs, {datetime.date.today().isoformat()}."
    write_text(PAGE, replaced(PAGE.read_text(encoding="utf-8"), name, found))
    evidence = experiment.evidence([dataset])
    print(*(f"{check.name}: {check.sentence}" for check in evidence.checks.values()), sep="\n")
    print(*evidence.findings, sep="\n")


if __name__ == "__main__":
    for name in sys.argv[2:] or TABLES:
        generate(name, Path(sys.argv[1]))
