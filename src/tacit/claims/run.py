"""Running claims, alone or many in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from tacit.arguments import integer
from tacit.claims.registry import Claim, Registry, ledger
from tacit.claims.verdict import Size, Verdict, Verdicts
from tacit.versions import versions

Progress = Callable[[Verdict], None]


def verify(
    names: str | Iterable[str] | None = None,
    full: bool = False,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    registry: Registry = ledger,
) -> Verdict | Verdicts:
    """The verdict of one claim id; for a source ("W"), several ids or None, all their verdicts.

    Parameters
    ----------
    names
        The ids or the source.
    full
        Takes larger instances.
    jobs
        Above 1 the claims run in new processes, so a script needs its `__main__` guard.
    progress
        Is called with each verdict as it arrives.
    registry
        The ledger of claims.

    Returns
    -------
    Verdict or Verdicts
        What was found.

    Examples
    --------
    >>> import tacit
    >>> verdict = tacit.verify("W-L7")
    >>> verdict.id, verdict.status
    ('W-L7', 'holds')
    """
    claims = registry.select(names)
    found = gather(claims, "full" if full else "quick", jobs, progress)
    return found[0] if registry.is_one(names) else found


def gather(
    claims: Iterable[Claim],
    size: Size = "quick",
    jobs: int | None = None,
    progress: Progress | None = None,
    known: Mapping[str, Verdict] | None = None,
) -> Verdicts:
    """The verdicts of `claims` in the order given, whichever finishes first.

    Claims whose id is in `known` are not run.
    """
    claims = tuple(claims)
    found = dict(known or {})
    for verdict in run([claim for claim in claims if claim.id not in found], size, jobs):
        found[verdict.id] = verdict
        if progress:
            progress(verdict)
    return Verdicts(tuple(found[claim.id] for claim in claims), versions())


def run(
    claims: Iterable[Claim], size: Size = "quick", jobs: int | None = None
) -> Iterator[Verdict]:
    """Verdicts as they finish, the longest claims started first; `jobs` defaults to the cores."""
    jobs = cores() if jobs is None else integer("verify", "jobs", jobs, least=1)
    queue = sorted(claims, key=lambda claim: -claim.seconds)
    if jobs == 1 or len(queue) <= 1:
        return (claim.run(size) for claim in queue)
    from tacit.claims.workers import run_in_workers  # multiprocessing is slow to import

    return run_in_workers(queue, size, min(jobs, len(queue)))


def cores() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
