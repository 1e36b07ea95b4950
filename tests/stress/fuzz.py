"""Fresh odd problems for the solvers, judged by other routes: `python tests/stress/fuzz.py 5000`.

The stream of random numbers is printed; `--stream S` repeats a run, `--stream S --number N` one of
its problems. Exit code 1 means that an answer was wrong, or that a call crashed.
"""

from __future__ import annotations

import argparse
import collections
import secrets
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))

import outcomes
from odd_problems import problem


def one(stream: int, number: int) -> int:
    """Prints one problem and what became of it."""
    case = problem(number, stream)
    print(case, f"\nX = {case.X!r}\ny = {case.y!r}")
    print(*outcomes.outcome(case), sep=": ")
    return 0


def many(stream: int, count: int) -> int:
    """Prints the table and every problem that was neither solved and right nor refused."""
    begun, total = time.process_time(), collections.Counter()
    print(f"stream {stream}", flush=True)
    for first in range(0, count, 100):
        counts, odd = outcomes.table(range(first, min(first + 100, count)), stream)
        total.update(counts)
        for found, name, why in odd:
            print(f"- {found}: {name}: {why}", flush=True)
    print(markdown(total), f"\n{count} problems, {time.process_time() - begun:.0f} s of CPU")
    return int(any(total[name, kind] for name, kind in total if kind in ("wrong", "crashed")))


def markdown(total: collections.Counter) -> str:
    """The counts by solver and outcome."""
    lines = ["| solver | " + " | ".join(outcomes.OUTCOMES) + " |"]
    lines.append("|---|" + "---:|" * len(outcomes.OUTCOMES))
    names = sorted({name for name, _ in total})
    for name in [*names, "all"]:
        numbers = [
            sum(total[n, kind] for n in (names if name == "all" else [name]))
            for kind in outcomes.OUTCOMES
        ]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000, help="how many problems")
    parser.add_argument("--stream", type=int, help="of random numbers; a fresh one if not given")
    parser.add_argument("--number", type=int, help="of the one problem to repeat")
    options = parser.parse_args()
    stream = secrets.randbelow(10**9) if options.stream is None else options.stream
    return many(stream, options.count) if options.number is None else one(stream, options.number)


if __name__ == "__main__":
    sys.exit(main())
