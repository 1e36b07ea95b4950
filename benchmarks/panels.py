"""The six panels of M-F3 and M-F4, data and drawing: 32 trajectories on the sphere."""

from __future__ import annotations

import tempfile

from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table

from penchant.lab import all_claims
from penchant.lab.files import save

FIGURES = ("M-F3", "M-F4")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    repeats = 1 if quick else 3
    rows, total = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for id in FIGURES:
            one = all_claims()[id]
            data, found = best_of(repeats, lambda one=one: one.data())
            drawing, _ = best_of(repeats, lambda one=one, d=found: one.picture(d))
            files, _ = best_of(repeats, lambda one=one, d=found: save(one, d, folder, ["png"]))
            curves = found[0].attrs["cells"]
            times = [seconds(value) for value in (data, drawing, files)]
            rows.append([id, one.title, curves, *times])
            total += data + files  # saving draws too
    print(f"Size quick. {ONE_THREAD}\n")
    table(["figure", "title", "trajectories", "data", "drawing", "drawing and files"], rows)
    ratio("six panels, data and drawing / 20 s", total / 20, "<= 1", judged=not quick)
    print(f"six panels, data and drawing: {seconds(total)}")


if __name__ == "__main__":
    main()
