"""Worker processes for experiments: one pipe each, so that a dying worker stops no other."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from time import perf_counter

from penchant.lab.evidence.verdict import Verdict
from penchant.lab.experiment import Experiment, Setting, sentence_of, unfinished
from penchant.threads import one_thread


def run_in_workers(
    experiments: Sequence[Experiment], setting: Setting, jobs: int
) -> Iterator[Verdict]:
    """Verdicts as they finish; a worker that dies loses only the experiment it was running.

    A ready-made pool would lose every pending result when one of its workers is killed.
    """
    queue = list(experiments)
    busy: dict[Connection, _Worker] = {}
    try:
        while queue or busy:
            while queue and len(busy) < jobs:
                worker = _Worker(setting)
                worker.give(_chosen(queue, "", [w.experiment for w in busy.values()]))
                busy[worker.pipe] = worker
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                verdict = worker.take()
                if worker.dead or not queue:
                    del busy[worker.pipe]
                    worker.stop()
                else:
                    others = [w.experiment for w in busy.values() if w is not worker]
                    worker.give(_chosen(queue, worker.experiment.source, others))
                yield verdict
    finally:  # also when the caller stops early or presses Ctrl-C
        for worker in busy.values():
            worker.stop()


def _chosen(queue: list[Experiment], paper: str, others: Sequence[Experiment]) -> Experiment:
    """The next experiment, taken out of the queue, of a worker that has run some of this paper.

    Experiments of one paper share compiled code, so a worker goes on with its paper, the first in
    the queue first; after that with the one that has the most work left for each of its workers.
    """
    work: dict[str, float] = {}
    for experiment in queue:
        work[experiment.source] = work.get(experiment.source, 0.0) + experiment.seconds
    if paper not in work:
        shared = [experiment.source for experiment in others]
        paper = max(work, key=lambda source: work[source] / (1 + shared.count(source)))
    return queue.pop(next(k for k, e in enumerate(queue) if e.source == paper))


class _Worker:
    """One process and the experiment it is running."""

    def __init__(self, setting: Setting):
        context = get_context("spawn")  # JAX may hang in a forked process
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=_work, args=(there,), daemon=True)
        self.process.start()
        there.close()  # so that the pipe closes when the worker ends
        self.setting = setting
        self.dead = False

    def give(self, experiment: Experiment) -> None:
        self.experiment, self.start = experiment, perf_counter()
        with suppress(OSError):  # a worker that died is noticed when its answer is taken
            self.pipe.send((experiment, self.setting))

    def take(self) -> Verdict:
        """The answer of the worker, or the verdict that says how it died."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            answer, self.dead = self._obituary(), True
        if isinstance(answer, Verdict):
            return answer
        took = perf_counter() - self.start
        return self.experiment.verdict(
            unfinished(answer), self.setting.size, self.setting.shift, seconds=took
        )

    def _obituary(self) -> str:
        self.process.join(timeout=5)
        code = self.process.exitcode
        how = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
        return f"the worker process {how} before the experiment was finished"

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _work(pipe: Connection) -> None:
    """Run experiments until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    with one_thread(xla=False), suppress(EOFError):
        while True:
            _answer(pipe)


def _answer(pipe: Connection) -> None:
    try:
        experiment, setting = pipe.recv()
        answer: Verdict | str = experiment.run(setting)
    except EOFError:
        raise
    except Exception as error:  # the experiment could not be unpickled here
        answer = sentence_of(error)
    with suppress(OSError):  # the parent has gone; the next recv ends the loop
        pipe.send(answer)
