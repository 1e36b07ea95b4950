"""The six panels of M-F3 and M-F4, data and drawing: 32 trajectories on the sphere."""

from __future__ import annotations

import tempfile

from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table

from tacit.figures import draw, figures, make
from tacit.figures.registry import save

FIGURES = ("M-F3", "M-F4")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    repeats = 1 if quick else 3
    rows, total = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for id in FIGURES:
            data, dataset = best_of(repeats, lambda id=id: make(id))
            drawing, _ = best_of(repeats, lambda id=id, d=dataset: draw(id, d))
            files, _ = best_of(repeats, lambda id=id, d=dataset: save(id, d, folder, ["png"]))
            curves = dataset.sizes["curve"]
            times = [seconds(value) for value in (data, drawing, files)]
            rows.append([id, figures()[id].title, curves, *times])
            total += data + files  # saving draws too
    print(f"Preset quick. {ONE_THREAD}\n")
    table(["figure", "title", "trajectories", "data", "drawing", "drawing and files"], rows)
    ratio("six panels, data and drawing / 20 s", total / 20, "<= 1", judged=not quick)
    print(f"six panels, data and drawing: {seconds(total)}")


if __name__ == "__main__":
    main()
