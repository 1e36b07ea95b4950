"""Running experiments, alone or many in parallel, for their verdicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from penchant.arguments import integer, one_of
from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.lab.experiment import Experiment, Setting
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.engines.named import cores
from penchant.lab.studies.sizes import SIZES, Size
from penchant.versions import versions

Progress = Callable[[Verdict], None]


def verify(
    names: str | Iterable[str] | None = None,
    *,
    size: Size = "quick",
    shift: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    registry: Registry | None = None,
) -> Verdict | Verdicts:
    """The verdict of one claim id; for a source ("W"), several ids or None, all their verdicts.

    Parameters
    ----------
    names
        The ids or the source.
    size
        "quick", or "printed" for the parameters of the source, which may take hours.
    shift
        Is added to every seed.
    jobs
        Above 1 the experiments run in new processes, so a script needs its `__main__` guard.
    folder
        Where finished cells are stored and found again; without it nothing is stored.
    progress
        Is called with each verdict as it arrives.
    registry
        The experiments to choose from, if not those of the papers.

    Returns
    -------
    Verdict or Verdicts
        What was found.

    Examples
    --------
    >>> import penchant
    >>> first = penchant.lab.all_claims().ids[0]
    >>> verdict = penchant.verify(first)
    >>> verdict.id == first, verdict.ok
    (True, True)
    """
    known = all_claims() if registry is None else registry
    place = None if folder is None else Path(folder)
    one_of("verify", "size", size, SIZES)
    setting = Setting(size, place, shift=shift)
    found = gather(known.select(names), setting, jobs, progress)
    return found[0] if known.is_one(names) else found


def gather(
    experiments: Iterable[Experiment],
    setting: Setting | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    known: Mapping[str, Verdict] | None = None,
) -> Verdicts:
    """The verdicts of `experiments` in the order given, whichever finishes first.

    Those whose id is in `known` are not run.
    """
    experiments = tuple(experiments)
    found = dict(known or {})
    missing = [experiment for experiment in experiments if experiment.id not in found]
    for verdict in run(missing, setting, jobs):
        found[verdict.id] = verdict
        if progress:
            progress(verdict)
    return Verdicts(tuple(found[experiment.id] for experiment in experiments), versions())


def run(
    experiments: Iterable[Experiment], setting: Setting | None = None, jobs: int | None = None
) -> Iterator[Verdict]:
    """Verdicts as they finish, the longest of a paper started first; `jobs` defaults to the cores.

    With an engine of its own the cells of one experiment after the other are given to it.
    """
    how = setting or Setting()
    jobs = cores() if jobs is None else integer("verify", "jobs", jobs, least=1)
    queue = sorted(experiments, key=lambda experiment: -experiment.seconds)
    if jobs == 1 or len(queue) <= 1 or how.engine != "here":
        return (experiment.run(how) for experiment in queue)
    from penchant.lab.workers import run_in_workers  # multiprocessing is slow to import

    return run_in_workers(queue, how, min(jobs, len(queue)))
