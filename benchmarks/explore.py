"""`penchant explore` in a headless Chromium: first render, slider to redraw, opening a large study.

A move sets a slider (or a choice) of the page to a random value and is timed in the browser: from
the change of the control until the answer of the server has been painted (two frames later). The
moves go over all controls of a view; hardly a value comes twice, so the server's memory of earlier
pictures rarely helps. A first render is timed from the click on a link until all plots are drawn,
on a page whose scripts the browser has cached, as they are after the first visit; the very first
visit stands beside it. The study has 100 x 100 cells with a trajectory each and two contours;
opening it is reading the file, putting its view together and the first render.

CPU: milliseconds that the server's process takes for one of these moves, from its values to the
messages; unlike the times in the browser they hardly depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

VIEWS = ("regularizer", "sphere", "regression", "grokking", "study")
MOVE = """(([name, value]) => new Promise(done => {
  const page = Bokeh.documents[0], line = page.get_model_by_name("sentence");
  const control = page.get_model_by_name(name);
  const begin = performance.now();
  const answered = () => {
    line.properties.tags.change.disconnect(answered);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
  };
  line.properties.tags.change.connect(answered);
  control.value = value;
}))(%s)"""


def large_study(file: Path, side: int) -> Path:
    """A study of side x side cells with trajectories, as `penchant run` gathers it."""
    import xarray

    from penchant import store

    rng = np.random.default_rng(0)
    shape, dims = (side, side), ("alpha", "decay")
    place = np.linspace(0, 1, side)
    error = place[:, None] + place + 0.05 * rng.random(shape)
    status = np.full(shape, "solved", dtype="U8")
    sentence = np.full(shape, "the data are fitted at t=12.5 with loss 1e-08", dtype="U48")
    variables: dict[str, Any] = {
        "test_error": (dims, error),
        "predicted": (dims, place[:, None] + place),
        "status": (dims, status),
        "sentence": (dims, sentence),
        "trajectory_t": ((*dims, "time"), np.cumsum(rng.random((*shape, 100)), axis=-1)),
        "trajectory_loss": ((*dims, "time"), rng.random((*shape, 100))),
    }
    axes = {name: np.geomspace(1e-3, 10, side) for name in dims}
    draw = {"colour": "test_error", "contours": {"test_error": 1.1, "predicted": 1.0}}
    attributes = {"study": "large", "title": "A large study",
                  "description": json.dumps({"draw": draw})}  # fmt: skip
    return store.write(xarray.Dataset(variables, axes, attributes), file)


def moves(view: Any, count: int) -> list[tuple[str, float | str]]:
    """Random values for the controls of a view in turn; each differs from the one before."""
    from penchant.explore.controls import Number

    rng = np.random.default_rng(1)
    now, found = dict(view.start), []
    movable = [c for c in view.controls if isinstance(c, Number) or len(c.options) > 1]
    while len(found) < count:
        control = movable[len(found) % len(movable)]
        if isinstance(control, Number):
            value: float | str = control.nearest(rng.uniform(control.low, control.high))
        else:
            value = str(rng.choice(sorted(control.options)))
        if value == now[control.name]:
            continue
        now[control.name] = value
        found.append((control.name, value))
    return found


def taken(name: str, views: dict[str, Any], count: int) -> list[float]:
    """CPU seconds of the server for every move of a view, the messages included."""
    from bokeh.document import Document
    from bokeh.protocol import Protocol

    from penchant.explore.document import Live
    from penchant.explore.state import State

    found, events, protocol = [], [], Protocol()
    page = Live(document := Document(), State(name, views[name].start), views)
    document.callbacks.on_change(events.append)
    for control, value in moves(views[name], count):
        page.values[control] = value
        events.clear()
        begin = time.process_time()
        page.redraw()
        for event in events:
            protocol.create("PATCH-DOC", [event])
        found.append(time.process_time() - begin)
    return found


async def measured(url: str, views: dict[str, Any], count: int, folder: str) -> dict[str, Any]:
    from explore_browser import browser

    found: dict[str, Any] = {}
    async with browser(folder) as page:
        found["first"] = await page.open(f"{url}?view=regularizer", 1280)
        for name in VIEWS:
            loads = [await page.open(f"{url}?view={name}", 1280) for _ in range(5)]
            times = []
            for move in moves(views[name], count):
                times.append(await page.run(MOVE % json.dumps(move)) / 1e3)
            found[name] = loads, times
        assert not page.complaints, page.complaints[:3]
    return found


def main() -> None:
    from clock import arguments, ratio, seconds, table

    from explore_browser import CHROMIUM, served
    from penchant.explore.study.view import study_view
    from penchant.explore.views import sphere, theory_views
    from penchant.lab.studies.gathered import read_gathered

    quick = arguments(__doc__ or "").quick
    if CHROMIUM is None:
        raise SystemExit("there is no chromium on this machine, so there is nothing to measure")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        study = large_study(Path(folder) / "large.nc", 10 if quick else 100)
        begin = time.perf_counter()
        views = {**theory_views(), "study": study_view(read_gathered(study))}
        reading = time.perf_counter() - begin
        sphere.prepare()
        with served(study, warm=True) as url:
            count = 6 if quick else 60
            found = asyncio.run(measured(url, views, count, f"{folder}/profile"))
    cpu = {name: np.quantile(taken(name, views, count), [0.5, 0.9]) for name in VIEWS}
    print(f"{count} moves a view; load of the machine {os.getloadavg()[0]:.1f}\n")
    rows = []
    for name in VIEWS:
        loads, times = found[name]
        half, most = np.quantile(times, [0.5, 0.9])
        rows.append([name, seconds(np.median(loads)), seconds(half), seconds(most),
                     seconds(max(times)), *map(seconds, cpu[name])])  # fmt: skip
    table(["view", "first render", "redraw, median", "90th percentile", "slowest",
           "CPU, median", "CPU, 90th"], rows)  # fmt: skip
    print(f"\nvery first visit: {seconds(found['first'])}; reading the study: {seconds(reading)}")
    every = [t for name in VIEWS for t in found[name][1]]
    slowest = max(float(np.median(found[name][0])) for name in VIEWS)
    judged = {"judged": not quick}
    ratio("first render of the slowest view, s", max(slowest, found["first"]), "<= 2", **judged)
    slow = float(np.quantile(every, 0.9))
    ratio("slider to redraw, 90th percentile, s", slow, "<= 0.2", **judged)
    opening = reading + float(np.median(found["study"][0]))
    ratio("opening a study of 10000 cells, s", opening, "<= 2", **judged)


if __name__ == "__main__":
    main()
