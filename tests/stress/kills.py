"""Studies that are killed at random times, by `kill -9`, and go on to the same bytes."""

from __future__ import annotations

import random
from pathlib import Path

from damage import Found
from killed_studies import KILLER, STUDY, child, killed_runs
from tacit.studies.run import run_study
from tacit.studies.study import Study

IN_A_ROW = 5  # kills of one study before it may end


def kills(folder: Path, count: int) -> Found:
    """Half of the kills hit a run in one process, half one with two workers."""
    study = Study(**STUDY)
    run_study(study, folder)
    expected = (folder / "slow.nc").read_bytes()
    found: Found = []
    for number in range(0, count, IN_A_ROW):
        out = folder / f"killed-{number}"
        out.mkdir()
        times = min(IN_A_ROW, count - number)
        if number % (2 * IN_A_ROW):
            killed_runs(out, times, random.Random(number), 1.5)
        else:
            told = child(KILLER, out, number, times).communicate(timeout=300)[0]
            assert int(told.split()[0]) == times
        run_study(study, out)
        wrong = "" if (out / "slow.nc").read_bytes() == expected else "other bytes"
        found += [(f"kill {number + k} of a study", wrong) for k in range(times)]
    return found
