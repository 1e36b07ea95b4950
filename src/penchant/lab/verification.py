"""Running experiments, alone or many in worker processes, for their verdicts."""

from __future__ import annotations

import base64
import dataclasses
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from penchant.arguments import integer, one_of
from penchant.door import door, door_as
from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.lab.evidence.verdict_json import pack_verdict, unpack_verdict
from penchant.lab.experiment import Experiment, Setting, sentence_of, unfinished
from penchant.lab.registry import Registry, all_claims
from penchant.lab.studies.engines.named import cores
from penchant.lab.studies.engines.pool import (
    TRIES,
    PoolTask,
    Send,
    Tasks,
    Work,
    Worker,
    run_in_pool,
)
from penchant.lab.studies.sizes import SIZES, Size
from penchant.progress import ProgressBar, checked, reporting
from penchant.versions import versions

Progress = Callable[[Verdict], None]


@door
def verify(
    names: str | Iterable[str] | None = None,
    *,
    size: Size = "quick",
    shift: int = 0,
    jobs: int = 1,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
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
        Above 1 the experiments run in worker processes, which import their modules; those of the
        running script or notebook, which cannot be imported, run here after the others.
    folder
        Where finished cells are stored and found again; without it nothing is stored.
    progress
        True shows a bar, False none; None shows one in an interactive session if the claims take
        more than two seconds. Or a function that is called with each verdict as it arrives.
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
    >>> verdict = penchant.verify(first, size="tiny")
    >>> verdict.id == first, verdict.ok
    (True, True)
    """
    known = all_claims() if registry is None else registry
    place = None if folder is None else Path(folder)
    one_of("size", size, SIZES)
    setting = Setting(size, place, shift=shift)
    chosen = known.select(names)
    with reporting(checked(progress), "verify") as told:
        verdicts = gather_verdicts(chosen, setting, jobs, _counted(told, len(chosen)))
    return verdicts[0] if known.is_one(names) else verdicts


def _counted(told: Any, total: int) -> Progress | None:
    """The caller's own function of a verdict, or one that moves a bar."""
    if not isinstance(told, ProgressBar):
        return cast("Progress | None", told)
    ended = 0

    def advance(verdict: Verdict) -> None:
        nonlocal ended
        ended += 1
        told(ended / total, f"{verdict.id} {verdict.status}, {ended} of {total}")

    return advance


def gather_verdicts(
    experiments: Iterable[Experiment],
    setting: Setting | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Verdicts:
    """The verdicts of `experiments` in the order given, whichever finishes first."""
    experiments = tuple(experiments)
    verdicts: dict[str, Verdict] = {}
    for verdict in run_experiments(experiments, setting, jobs):
        verdicts[verdict.id] = verdict
        if progress:
            progress(verdict)
    return Verdicts(tuple(verdicts[experiment.id] for experiment in experiments), versions())


@door_as("verify")
def run_experiments(
    experiments: Iterable[Experiment], setting: Setting | None = None, jobs: int | None = None
) -> Iterator[Verdict]:
    """Verdicts as they finish, the longest of a paper started first; `jobs` defaults to the cores.

    With an engine of its own the cells of one experiment after the other are given to it.
    """
    how = setting or Setting()
    jobs = cores() if jobs is None else integer("jobs", jobs, least=1)
    queue = sorted(experiments, key=lambda experiment: -experiment.seconds)
    if jobs == 1 or len(queue) <= 1 or how.engine != "here":
        return (experiment.run(how) for experiment in queue)
    return _in_processes(queue, how, jobs)


def _in_processes(queue: list[Experiment], how: Setting, jobs: int) -> Iterator[Verdict]:
    of_script = [experiment for experiment in queue if _is_of_script(experiment)]
    others = [experiment for experiment in queue if not _is_of_script(experiment)]
    for batch in run_in_pool(_ExperimentTasks(others, how), jobs):
        yield from batch
    for experiment in of_script:
        yield experiment.run(how)


def _is_of_script(experiment: Experiment) -> bool:
    """Whether the running script or notebook defines it: no other process can import that."""
    cells = [sizes.quick.get("function") for sizes in experiment.studies]
    functions = [experiment.check, experiment.draw, *cells]
    return any(getattr(function, "__module__", "") == "__main__" for function in functions)


class _ExperimentTasks(Tasks[Verdict]):
    """Experiments that wait; a worker gets one at a time."""

    work = f"{__name__}:judge_experiments"

    def __init__(self, queue: list[Experiment], setting: Setting):
        self.queue, self.setting = queue, setting
        self.known = {experiment.id: experiment for experiment in queue}
        place = None if setting.folder is None else str(setting.folder)
        self.setup = {**dataclasses.asdict(setting), "folder": place}

    def __len__(self) -> int:
        return len(self.queue)

    def portion(self, worker: Worker, workers: Sequence[Worker]) -> list[PoolTask]:
        if worker.given or not self.queue:
            return []
        others = [self.known[id].source for w in workers if w is not worker for id in w.given]
        paper = self.known[worker.last].source if worker.last else ""
        experiment = choose(self.queue, paper, others)
        # functions are pickled by their names, so this is small
        text = base64.b64encode(pickle.dumps(experiment)).decode()
        return [PoolTask(experiment.id, [experiment.id, text])]

    def put_back(self, tasks: list[PoolTask]) -> None:
        self.queue[:0] = [self.known[task.name] for task in tasks]

    def read(self, answer: list[Any]) -> Verdict:
        id, told, sentence = answer
        return unpack_verdict(told, id) if told else self._unfinished(id, sentence)

    def give_up(self, task: PoolTask, how: str) -> Verdict:
        sentence = f"{TRIES} worker processes ended before the experiment was finished ({how})"
        return self._unfinished(task.name, sentence)

    def _unfinished(self, id: str, sentence: str) -> Verdict:
        return self.known[id].verdict(unfinished(sentence), self.setting.size, self.setting.shift)


def choose(queue: list[Experiment], paper: str, others: Sequence[str]) -> Experiment:
    """The next experiment, taken out of the queue, of a worker that has run some of this paper.

    Experiments of one paper share compiled code, so a worker goes on with its paper, the first in
    the queue first; after that with the one that has the most work left for each of its workers.
    `others` are the papers that the other workers are busy with.
    """
    work: dict[str, float] = {}
    for experiment in queue:
        work[experiment.source] = work.get(experiment.source, 0.0) + experiment.seconds
    if paper not in work:
        paper = max(work, key=lambda source: work[source] / (1 + others.count(source)))
    return queue.pop(next(k for k, e in enumerate(queue) if e.source == paper))


def judge_experiments(setup: dict[str, Any]) -> Work:
    """What a worker does with experiments: it answers with the id and the verdict of each."""
    place = setup["folder"]
    setting = Setting(**{**setup, "folder": None if place is None else Path(place)})

    def judge(experiments: list[Any], send: Send) -> None:
        for id, text in experiments:
            try:
                experiment: Experiment = pickle.loads(base64.b64decode(text))
                answer = [id, pack_verdict(experiment.run(setting)), ""]
            except Exception as error:  # the experiment could not be unpickled here
                answer = [id, None, sentence_of(error)]
            send([answer])

    return judge
