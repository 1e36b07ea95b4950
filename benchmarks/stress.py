"""10,000 random odd problems for `interpolate` and `max_margin`, each judged by another route.

Integer, 0/1, one-hot, tied, nearly dependent and normal designs; rows, columns and targets over
hundreds of decades; all regularizers and depths. Solutions are judged by their optimality
conditions in 60 digits (tests/stress/judge.py), refusals by construction of the data or by HiGHS.
One in fifty that Q solves is compared with an independent solver in 40 digits
(tests/support/oracle.py).
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from clock import arguments, ratio, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "stress"))

import outcomes

PIECE = 250  # problems in one go


def main() -> None:
    quick = arguments(__doc__ or "").quick
    count = 200 if quick else 10_000
    pieces = [range(start, start + min(PIECE, count)) for start in range(0, count, PIECE)]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(outcomes.table, pieces))
        compared = list(pool.map(outcomes.farthest, [p[::50] for p in pieces]))
    counts = sum((counted for counted, _ in found), start=type(found[0][0])())
    names = sorted({name for name, _ in counts})
    rows = [[name, *(counts[name, kind] for kind in outcomes.OUTCOMES)] for name in names]
    total = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(f"{count} problems.\n")
    table(["solver", *outcomes.OUTCOMES], [*rows, ["all", *total]])
    for kind, case, why in (odd for _, pieces_odd in found for odd in pieces_odd):
        print(f"- {kind}: {case}: {why}")
    solved = sum(number for number, _ in compared)
    print(f"\nfarthest of {solved} from the independent solver: {max(d for _, d in compared):.1e}")
    ratio("stalled", total[outcomes.OUTCOMES.index("stalled")] / count, "<= 0.001")
    ratio("wrong", total[outcomes.OUTCOMES.index("wrong")] / count, "<= 0")
    ratio("crashed", total[outcomes.OUTCOMES.index("crashed")] / count, "<= 0")


if __name__ == "__main__":
    main()
