"""One page for every source: each statement with its verdict, picture, file and commands.

Verdicts and numbers are those on record, as in docs/papers.md. A report of `penchant verify` adds
pictures; a quick verdict in it that contradicts the record is an error.
"""

import base64
import inspect
import runpy
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from penchant.lab import Experiment, Paper, Recorded, Verdict, all_claims, paper_of, papers
from penchant.lab.evidence.evidence import STATUSES
from penchant.lab.evidence.verdict import MEANINGS, SYMBOLS, shown
from penchant.lab.evidence.verdict_json import read_verdicts
from penchant.lab.report.section import image_type
from penchant.records import brief

ROOT = Path(__file__).resolve().parent.parent.parent
COVERAGE = runpy.run_path(str(ROOT / "docs" / "coverage.py"))
escaped = COVERAGE["escaped"]


def picture_file(verdict: Verdict) -> str:
    """The name of the file with its picture."""
    return f"{verdict.id}.{image_type(verdict.picture)}"


def pages(report: Path, folder: Path) -> dict[str, str]:
    """The page of every source and the overview; pictures of the report go into `folder`."""
    rows = COVERAGE["rows"]()
    verdicts = _verdicts(report, rows)
    folder.mkdir(parents=True, exist_ok=True)
    for verdict in verdicts.values():
        if verdict.picture:
            (folder / f"{verdict.id}.{image_type(verdict.picture)}").write_bytes(
                base64.b64decode(verdict.picture)
            )
    groups = {name_of(paper): (paper, _rows_of(paper, rows)) for paper in papers()}
    found = {
        f"papers/{name}.md": _page(source, own, verdicts) for name, (source, own) in groups.items()
    }
    return found | {"papers/index.md": _overview(groups, rows, bool(verdicts))}


def _verdicts(report: Path, rows: Iterable[Recorded]) -> dict[str, Verdict]:
    """The verdicts of the report by id, none if there is no report."""
    file = report / "verdicts.json"
    verdicts = {verdict.id: verdict for verdict in read_verdicts(file)} if file.exists() else {}
    for row in rows:
        verdict = verdicts.get(row.id)
        if verdict and (verdict.statement, verdict.status) != (row.statement, row.quick_status):
            raise SystemExit(
                f"papers: {row.id} {verdict.status} in {file} and {row.quick_status} on record;"
                f" run `penchant verify {row.id} --record`"
            )
    return verdicts


def name_of(paper: Paper) -> str:
    """The name of its page, which is that of its folder in src/penchant_papers."""
    return paper.package.rpartition(".")[2]


def _rows_of(paper: Paper, rows: Iterable[Recorded]) -> list[Recorded]:
    return [row for row in rows if paper_of(row.id) == paper]


def _overview(groups: dict[str, Any], rows: list[Recorded], pictures: bool) -> str:
    seen = [status for status in STATUSES if any(row.status == status for row in rows)]
    lines = [
        "# Papers",
        "",
        f"penchant checks {len(rows)} statements and figures. Each is one file of"
        " `src/penchant_papers/` with its runs, check, controls and picture. The numbers"
        " are on record, written by `penchant verify --record`; no verdict is written by hand."
        " [What the sources print](coverage.md) goes through the sources line by line.",
        "",
        f"| source | statements | {' | '.join(seen)} |",
        "|---" * (len(seen) + 2) + "|",
    ]
    for name, (paper, own) in groups.items():
        counts = Counter(row.status for row in own)
        numbers = " | ".join(str(counts[status] or "") for status in seen)
        about = f": {paper.title}" if paper.authors else ""
        lines.append(f"| [{paper.short}]({name}.md){about} | {len(own)} | {numbers} |")
    lines += ["", *(f"- {SYMBOLS[status]} *{status}*: {MEANINGS[status]}" for status in seen), ""]
    if not pictures:
        lines += [
            "",
            "This copy of the site was built without a report of `penchant verify`, so that its"
            " pages have no pictures.",
            "",
        ]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *groups, "coverage", "```", ""])


def _page(source: Paper, rows: list[Recorded], verdicts: dict[str, Verdict]) -> str:
    lines = [f"# {source.short}", ""]
    if source.authors:
        lines += [
            f"{', '.join(source.authors)}: [*{source.title}*]({source.url}), {source.year}.",
            "",
            f"We read the {source.form}, and check what is printed there.",
            "",
        ]
    for row in rows:
        lines += _statement(all_claims()[row.id], row, verdicts.get(row.id))
    return "\n".join(lines)


def _statement(experiment: Experiment, row: Recorded, today: Verdict | None) -> list[str]:
    file = Path(inspect.getfile(experiment.check)).resolve().relative_to(ROOT)
    verdict = row.verdict()
    decisive = verdict.decisive
    check = f"{decisive.name}: {shown(decisive)}" if decisive else "none"
    lines = [
        f"## {row.id}",
        "",
        f"**{escaped(row.statement)}**",
        "",
        f"{SYMBOLS[verdict.status]} *{verdict.status}* · {escaped(experiment.place)}",
        "",
    ]
    if verdict.correction:
        lines += [f"Correction: {escaped(verdict.correction)}", ""]
    if verdict.correction and verdict.counterexample:
        lines += [f"Counterexample: {escaped(_words(verdict.counterexample))}", ""]
    if today and today.picture:
        words = escaped(experiment.title or row.statement)
        lines += [f"![{words}]({picture_file(today)})", ""]
    lines += [
        f"- Decisive check: {escaped(check)}",
        f"- Scope: {escaped(verdict.scope)}",
        f"- Run ({verdict.size}, {row.verdicts[verdict.size]['date']}): {escaped(verdict.ran)}",
        f"- The same status with other seeds: {row.survival}",
        f"- File: `{file}`",
        f"- Commands: `penchant verify {row.id}`, `penchant figure {row.id}`,"
        f" `penchant explore {row.id}`",
        "",
    ]
    return lines


def _words(value: Any) -> str:
    """A counterexample as text."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {brief(entry)}" for name, entry in value.items())
    return brief(value)
