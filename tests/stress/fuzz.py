"""Fresh odd problems for every solver, judged by other routes: `python tests/stress/fuzz.py 5000`.

The stream of random numbers is printed; `--stream S` repeats a run, `--stream S --number N` one of
its problems, `--jobs 2` takes two processes. Exit code 1 means that an answer was wrong, that a
call did not end within 20 s of processor time, or that one crashed.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import multiprocessing
import secrets
import signal
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))

import outcomes

PIECE = 100  # problems in one go
LONGEST = 600  # seconds for a piece: a call that no signal reaches ends the program, with its place


def one(stream: int, number: int) -> int:
    """Prints one problem and what became of it."""
    case = outcomes.drawn(number, stream)
    print(case)
    if isinstance(case, outcomes.Problem):
        print(f"X = {case.X!r}\ny = {case.y!r}")
    found, why = outcomes.outcome(case)
    print(found, why, sep=": ")
    return int(found in outcomes.FAULTS)


def piece(stream: int, numbers: range) -> tuple[collections.Counter, list, float]:
    """(counts, odd cases, processor time) of some numbers."""
    begun = time.process_time()
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    counts, odd = outcomes.table(numbers, stream)
    faulthandler.cancel_dump_traceback_later()
    return counts, odd, time.process_time() - begun


def many(stream: int, count: int, jobs: int) -> int:
    """Prints the table and every problem that was neither solved and right nor refused.

    Ctrl-C or SIGTERM ends the run early, with the table of what is done.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    total, seconds = collections.Counter(), 0.0
    print(f"stream {stream}", flush=True)
    pieces = [range(k, min(k + PIECE, count)) for k in range(0, count, PIECE)]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        waiting = [pool.apply_async(piece, (stream, numbers)) for numbers in pieces]
        try:
            for result in waiting:
                counts, odd, spent = result.get()
                total.update(counts)
                seconds += spent
                for found, name, why in odd:
                    print(f"- {found}: {name}: {why}", flush=True)
        except KeyboardInterrupt:
            print("interrupted")
    print(markdown(total), f"\n{total.total()} problems, {seconds:.0f} s of CPU", flush=True)
    return int(any(total[name, kind] for name, kind in total if kind in outcomes.FAULTS))


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
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    stream = secrets.randbelow(10**9) if options.stream is None else options.stream
    if options.number is not None:
        return one(stream, options.number)
    return many(stream, options.count, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
