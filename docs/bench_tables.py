"""Generate the tables of docs/howto/forecast_bench.md from the recorded runs.

`python docs/bench_tables.py` fits every rule on one half of the runs and scores it on the other.
"""

import math
from collections.abc import Callable
from pathlib import Path

from penchant.lab.writing import write_text
from penchant_papers.probe.bench import answers, calibrated, half_of, tally
from penchant_papers.probe.bench.rules import MAKERS, OURS
from penchant_papers.probe.bench.scores import RuleAnswer, Tally, remembered

PAGE = Path(__file__).resolve().parent / "howto" / "forecast_bench.md"
HEAD = "median error", "inside 80%", "upper over lower end", "refused", "area", "false alarms"


def rows_of(first: str, rows: list[list[str]], numbers: int = 2) -> str:
    """A table of Markdown."""
    head = [first, *("groks", "quiet")[:numbers], *HEAD]
    marks = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def shown(made: Tally) -> list[str]:
    """The scores of a rule."""
    width = "" if math.isnan(made.width) else f"{made.width:.1f}"
    area = "" if math.isnan(made.auroc) else f"{made.auroc:.2f}"
    return [
        share(made.error),
        share(made.coverage),
        width,
        share(made.refused),
        area,
        share(made.alarms),
    ]


def share(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0%}"


def by_rule() -> str:
    """Every rule with its own intervals and with intervals fitted by family."""
    fit, judged = half_of("fit"), half_of("judged")
    rows = []
    for name, maker in MAKERS.items():
        rule = remembered(maker(fit))
        own, bounded = (tally(answers(r, judged)) for r in (rule, calibrated(rule, fit)))
        if not math.isnan(own.coverage):
            rows.append([f"{name}, its own interval", *shown(own)])
        rows.append([name, *shown(bounded)])
    return rows_of("rule", rows, numbers=0)


def by(place: Callable[[RuleAnswer], str]) -> str:
    """The watch with its own intervals, on the parts of the judged half."""
    given = answers(MAKERS[OURS]([]), half_of("judged"))
    parts = {
        name: [a for a in given if place(a) == name] for name in sorted(set(map(place, given)))
    }
    made = {name: tally(part) for name, part in parts.items()} | {"all": tally(given)}
    return rows_of(
        "part", [[name, str(t.grok), str(t.quiet), *shown(t)] for name, t in made.items()]
    )


TABLES = {
    "rules": by_rule,
    "families": lambda: by(lambda answer: answer.run.run.family),
    "optimizers": lambda: by(lambda answer: answer.run.run.optimizer),
    "times": lambda: by(lambda answer: f"{answer.factor:g}"),
}


def page(text: str) -> str:
    """The page with its tables made again."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table()}\n{end}{after}"
    return text


if __name__ == "__main__":
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8")))
