"""The function `train`: it trains a model on a problem by a method and returns a path."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.arguments import integer
from penchant.description import describe
from penchant.door import Invalid, class_name, door, door_as
from penchant.interrupt import heeding
from penchant.lazy import jax
from penchant.models.tokens.net import TokenNet
from penchant.precision import computed_now, double_precision
from penchant.problems.arithmetic import TokenPairs
from penchant.problems.classification import Classification
from penchant.problems.images.load import Images
from penchant.problems.matrix_problem import MatrixProblem
from penchant.problems.regression import Regression
from penchant.progress import checked, reporting
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.penalty import Term
from penchant.threads import on_one_blas_thread
from penchant.training import record as recording
from penchant.training import stop as stopping
from penchant.training.descent.compiled import batches
from penchant.training.descent.driver import Run, follow
from penchant.training.descent.from_optax import Optax
from penchant.training.descent.method import Scheme, StepMethod
from penchant.training.descent.plan import StepPlan, plan
from penchant.training.exact.flow import Flow, RunSettings, run_flow
from penchant.training.images import ImageTask
from penchant.training.path import Path, are_noted, joined, note_outcome, resumed
from penchant.training.samples import SampleTask
from penchant.training.task import Progress, Task, traced
from penchant.training.tokens import TokenTask
from penchant.versions import versions
from penchant.words import is_optimizer

Stops = stopping.Stop | Sequence[stopping.Stop] | None
Records = recording.Rule | Sequence[recording.Rule] | None
Rules = tuple[tuple[stopping.Stop, ...], tuple[recording.Rule, ...]]
Written = tuple[dict[str, Any], dict[str, Any]]  # a description and its large arrays


@on_one_blas_thread
@computed_now
@door
def train(
    model: Any,
    problem: Any,
    method: Any,
    *,
    penalty: Any = None,
    stop: Stops = None,
    record: Records = None,
    batch: int | None = None,
    seed: int = 0,
    resume: Path | None = None,
    progress: bool | Progress | None = None,
    throw: bool = False,
) -> Path:
    """Train `model` on `problem` by `method`, and return the path that training took.

    Parameters
    ----------
    model
        What is trained and where it starts: DiagonalNet, Factorization, a net, FunctionModel
        around a JAX function of yours.
    problem
        Data, loss and truth: Regression, Classification, Completion, Sensing, token pairs, Images.
    method
        How parameters move: GradientDescent, Adam, Proximal, an exact flow such as DualFlow, or any
        optimizer of optax, such as optax.adamw(1e-3). The training time of an optax optimizer
        counts its steps; a path describes it by its functions and the numbers they enclose.
    penalty
        A number times a regularizer, such as 1e-3 * L1(), added to the loss.
    stop
        One rule or several; the first one that is met stops training: Steps, Time, Loss, ...
    record
        LogSpaced(20), the default, or At(steps=[...]).
    batch
        Samples per step; each epoch uses every sample once. None uses all samples at every step.
    seed
        The seed of the order of the batches.
    resume
        The path of an earlier run with the same arguments except stop and record; training
        continues where it ended, with exactly the numbers of an uninterrupted run.
    progress
        True shows a bar, False none; None shows one in an interactive session if training takes
        more than two seconds. Or a function that is called from time to time with the fraction
        done and a short text.
    throw
        True raises an error if training did not end well: it diverged, stalled, or spent its steps
        before a goal was met. False returns that path too, and its `outcome` says what happened;
        a run that missed its goal has recorded as much as one that met it.

    Raises
    ------
    ValueError
        The arguments are wrong or do not fit together, whatever `throw` is.
    NumericalError
        Training did not end well; see `throw`. Its `result` is the path.

    Notes
    -----
    Ctrl-C ends training at the next measurement. The path so far is returned, its outcome is
    "interrupted", and `resume` continues it if the method takes steps. Pressed twice, it raises
    KeyboardInterrupt.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(20, 50, sparsity=3)
    >>> path = penchant.train(
    ...     penchant.DiagonalNet(2, alpha=0.1), problem, penchant.GradientDescent(1e-3),
    ...     stop=[penchant.Steps(20_000), penchant.stop.Loss(1e-6)],
    ... )
    >>> path.outcome.ok
    True
    """
    method = Optax(method) if is_optimizer(method) else method
    rules = stopping.rules(stop), recording.rules(record)
    if not isinstance(method, Flow | StepMethod):
        raise Invalid(
            f"the method must be one such as GradientDescent(0.01), got {type(method).__name__}"
        )
    # a cell of a study that Ctrl-C stops is not a cell with a result
    with reporting(checked(progress), "train") as told, heeding(not are_noted()):
        report = None if told is None else _rarely(told)
        if isinstance(method, Flow):
            path = _by_flow(method, model, problem, penalty, rules, batch, resume, report)
        else:
            path = _by_steps(method, model, problem, penalty, rules, batch, seed, resume, report)
    if throw and not path.outcome.ok:
        raise NumericalError("train", path.outcome, path)
    return path


@door_as(class_name)
def _by_flow(
    flow: Flow,
    model: Any,
    problem: Any,
    penalty: Any,
    rules: Rules,
    batch: int | None,
    resume: Path | None,
    progress: Progress | None,
) -> Path:
    for name, given in {"batch": batch, "resume": resume}.items():
        if given is not None:
            raise Invalid(f"an exact flow has no {name}; leave it out")
    followed = run_flow(flow, model, problem, penalty, RunSettings(*rules, progress=progress))
    written = _described(model, problem, flow, rules, penalty=penalty)
    return _path(followed.dataset, followed.outcome, written, followed.parameters)


@door_as(class_name)
def _by_steps(
    method: StepMethod,
    model: Any,
    problem: Any,
    penalty: Any,
    rules: Rules,
    batch: int | None,
    seed: int,
    resume: Path | None,
    progress: Progress | None,
) -> Path:
    scheme = method.scheme
    stopping.understood_by_steps(rules[0])
    # parameters without a gradient stay where they are
    still = penalty is None and scheme.elementwise and not scheme.weight_decay
    task = task_of(model, problem, still)
    with double_precision():
        scheme.start(task)  # refuses what it cannot train
    if not scheme.logarithmic:
        task.refuse_overflow()
    penalty = checked_penalty(scheme, penalty, task)
    size = batches(task.samples, batch, noisy=scheme.label_noise > 0)
    if size.size is not None and not scheme.batches:
        raise Invalid("works on all samples at once; leave batch= out")
    seed = integer("seed", seed, least=0)
    if seed >= 2**63:
        raise Invalid(f"seed must be below 2^63, got {seed}")
    _stable(scheme, task, penalty, full=size.size is None)
    written = _described(model, problem, method, rules, penalty=penalty, batch=batch, seed=seed)
    with double_precision():
        run = Run(task, method, penalty, size, seed)
        return _stepped(run, plan(run, *rules), written, resume, progress)


def task_of(model: Any, problem: Any, still: bool = False) -> Task:
    """The pair as one task, or an error; `still`: parameters without a gradient stay in place."""
    if isinstance(problem, TokenPairs):
        return TokenTask(model, problem)
    if isinstance(model, TokenNet):
        raise Invalid(
            f"{type(model).__name__} answers pairs of tokens, got {_kind(problem)}; use "
            "modular_arithmetic() or permutation_group() as the problem"
        )
    if isinstance(problem, Images):
        return ImageTask(model, problem, still)
    if isinstance(problem, Regression | Classification | MatrixProblem):
        return SampleTask(model, problem)
    raise Invalid(
        f"the problem must be a Regression, a Classification, a matrix problem such as "
        f"Completion, pairs of tokens or Images, got {_kind(problem)}; wrap the data as "
        "Regression(X, y)"
    )


def _kind(thing: Any) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__


def checked_penalty(scheme: Scheme, penalty: Any, task: Task) -> Any:
    """The penalty, if the method can use it on these parameters; None if its weight is zero."""
    if penalty is None:
        if scheme.penalties == "prox":
            raise Invalid("needs a penalty with a proximal map, such as penalty=0.1 * L1()")
        return None
    if not isinstance(penalty, Term):
        raise Invalid(
            f"penalty must be a number times a regularizer, such as 1e-3 * L1(), got {penalty!r}"
        )
    if scheme.penalties == "none":
        raise Invalid(f"takes no penalty, got {penalty!r}")
    if scheme.penalties == "smooth" and not penalty.smooth:
        raise Invalid(
            f"{penalty!r} has kinks, where there is no gradient; use "
            "GradientDescent(..., subgradient=True) or Proximal"
        )
    if scheme.penalties == "prox" and not penalty.has_prox:
        raise Invalid(
            f"{penalty!r} has no proximal map; use GradientDescent(..., subgradient=True)"
        )
    penalty = task.shaped(penalty)
    _fits(penalty, task.start, scheme.penalties == "prox")
    return penalty


def _fits(penalty: Any, start: Any, prox: bool) -> None:
    leaves, structure = jax.tree.flatten(start)
    shape = jax.tree.unflatten(structure, [leaf.shape for leaf in leaves])
    due = {"value": (), "subgradient": shape} | ({"prox": shape} if prox else {})
    for name, wanted in due.items():
        actual = _traced(penalty, name, structure, tuple((a.shape, a.dtype) for a in leaves))
        if actual != wanted:
            raise Invalid(f"the penalty's {name} must have shape {wanted}, got {actual}")


@functools.lru_cache(maxsize=64)
def _traced(penalty: Any, name: str, structure: Any, leaves: tuple[Any, ...]) -> Any:
    start = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves])
    given, more = ((start, 1.0), " and a length") if name == "prox" else ((start,), "")
    rule = f"must be a function of the parameters{more} in jax.numpy"
    return traced(f"the penalty's {name} {rule}", getattr(penalty, name), *given)


def _stable(scheme: Scheme, task: Task, penalty: Any, full: bool) -> None:
    """Refuses a learning rate beyond the bound of a quadratic loss, on all samples."""
    smoothness = task.smoothness() if scheme.check and full else None
    if smoothness is None:
        return
    bound = scheme.limit(smoothness, 0.0 if penalty is None else penalty.curvature)
    if bound is not None and not scheme.learning_rate < bound[0]:
        raise Invalid(
            f"learning_rate must be {bound[1]} = {bound[0]:.6g}, or descent can "
            f"diverge, got {scheme.learning_rate:g}; take a smaller one, or check=False to run it "
            "anyway"
        )


def _described(model: Any, problem: Any, method: Any, rules: Rules, **more: Any) -> Written:
    """What a path holds of the arguments of its run, and the large arrays among them."""
    given = {"model": model, "problem": problem, "method": method, **more}
    given |= {"stop": rules[0], "record": rules[1]}
    arrays: dict[str, Any] = {}
    written = {name: describe(thing, arrays) for name, thing in given.items()}
    return written | {"about": problem.description, "versions": versions()}, arrays


def _stepped(
    run: Run,
    todo: StepPlan,
    written: Written,
    before: Path | None,
    progress: Progress | None,
) -> Path:
    meter, state = run.meter, run.begin()
    moment = run.moment(state)
    meter.keep(moment, meter.look(moment))
    if before is not None:
        state = run.again(state, *resumed(before, written[0], todo.last))
        moment = run.moment(state)
    outcome = todo.goals.met(moment, meter.look(moment))
    if outcome is not None and before is not None:
        return before
    belongs = None if before is None else todo.belonging(before, run.rate(state))
    if belongs is not None and belongs[-1]:
        meter.last = moment.step
    if outcome is None:
        state, outcome = follow(run, state, todo, progress)
    dataset = meter.dataset() if before is None else joined(before, belongs, meter.dataset())
    if run.batches.epoch is not None:
        about = {"units": "epochs", "long_name": "number of passes over the samples"}
        epochs = dataset.step.values / run.batches.epoch
        dataset = dataset.assign_coords(epoch=("time", epochs, about))
    parameters = run.task.whole(jax.tree.map(np.asarray, state.parameters))
    memory = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(state.memory))
    outcome = Outcome(outcome.kind, outcome.sentence + run.scheme.note(state.memory))
    lost = outcome.kind is Kind.DIVERGED  # it cannot be resumed
    return _path(dataset, outcome, written, parameters, None if lost else memory)


def _rarely(progress: Progress) -> Progress:
    last_share = -1.0

    def called(share: float, text: str) -> None:
        nonlocal last_share
        if share >= min(last_share + 0.02, 1.0):
            last_share = share
            progress(share, text)

    return called


def _path(
    dataset: Any, outcome: Outcome, written: Written, parameters: Any, memory: Any = None
) -> Path:
    description, arrays = written
    about = {"description": json.dumps(description), "outcome": outcome.kind.value}
    dataset.attrs = about | {"sentence": outcome.sentence}
    note_outcome(outcome)
    return Path(outcome, dataset, parameters, memory, arrays)
