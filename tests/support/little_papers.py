"""Little experiments about numbers, for the tests of the machinery around experiments."""

from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from penchant.lab import Evidence, Experiment, Plot, Registry, Series, at_most, sized, within


def count(terms: int) -> dict[str, int]:
    return {"number": terms}


def summed(id, statement, place, check, seconds=1.0, cell=count, draw=None):
    """An experiment whose only cell says how many terms there are."""
    more = {"printed": {"arguments": {"terms": 200_000}}}
    study = sized(id, function=cell, arguments={"terms": 20_000}, **more)
    return Experiment(id, statement, place, study, check, draw, seconds=seconds)


def blank(dataset) -> Figure:
    """A picture that costs nothing, for tests that are not about it."""
    return Figure(figsize=(1, 1))


def basel(dataset) -> Evidence:
    terms = int(dataset.number)
    k = np.arange(1, terms)
    partial = np.cumsum(1.0 / k**2)
    error = np.abs(partial - np.pi**2 / 6)
    slope = np.polyfit(np.log(k[100:]), np.log(error[100:]), 1)[0]
    order = within(slope, -1.0, tolerance=0.05)
    shown = slice(None, None, 199)
    return Evidence(
        ran=f"partial sums of {terms} terms in float64",
        checks={
            "distance to pi^2/6": within(error[-1], tolerance=1e-4),
            "order of convergence": order,
        },
        premises={"the terms fall": (np.all(np.diff(1.0 / k**2) < 0), float(1.0 / k[-1] ** 2))},
        controls={
            "pi^2 / 8 in place of pi^2 / 6": abs(partial[-1] - np.pi**2 / 8),
            "an order of 2": order.control(predicted=-2.0),
        },
        findings=["The error falls like one over the number of terms."],
        plots=[
            Plot(
                "Error of the partial sums",
                "terms k",
                "distance to the limit",
                [
                    Series("measured", k[shown], error[shown], "points"),
                    Series("1/k", k[shown], 1 / k[shown], "dashed"),
                ],
                x_scale="log",
                y_scale="log",
                caption="The distance follows 1/k.",
            ),
            Plot("Partial sums", "terms k", "sum", [Series("sum", k[:60], partial[:60], "steps")]),
        ],
    )


def sum_of_integers(dataset) -> Evidence:
    n = np.arange(1, 200)
    sums = np.cumsum(n)
    return Evidence(
        ran="n from 1 to 199, exact integers",
        checks={"largest error of n(n - 1)/2": within(np.abs(sums - n * (n - 1) / 2).max())},
        corrected={"largest error of n(n + 1)/2": within(np.abs(sums - n * (n + 1) / 2).max())},
        correction="the sum is n(n + 1)/2: the sign in front of 1 is a misprint",
        counterexample={"n": np.int64(3), "sum": np.int64(6), "printed formula": np.float64(3.0)},
        controls={"$n^2 / 2$": np.abs(sums - n**2 / 2).max()},
    )


def odd_is_prime(dataset) -> Evidence:
    checks = {"odd numbers below 30 that are not prime": at_most(5)}
    return Evidence(ran="odd numbers below 30", checks=checks, controls={"even": 14})


def vague(dataset) -> Evidence:
    checks = {"distance": within(2.2 - 2.2**0.5, tolerance=1.0)}
    return Evidence(ran="one number", checks=checks, controls={"3 in place of 2.2": 0.8})


def stops(dataset) -> Evidence:
    warnings.warn("about to divide", RuntimeWarning, stacklevel=1)
    return Evidence(ran="", checks={"quotient": within(1 / 0)})


library = Registry(
    experiments=[
        summed(
            "A-MEAN", "the sum of 1 .. n is n(n - 1)/2", "section 2, equation (3)", sum_of_integers
        ),
        summed("A-SUM", "1 + 1/4 + 1/9 + ... = pi^2 / 6", "section 1", basel, seconds=3),
        summed("B-FALSE", "every <odd> number & its square are prime", "remark 7", odd_is_prime),
        summed("B-STOP", "division by zero is possible", "remark 9", stops),
        summed("B-VAGUE", "2.2 is close to its square root", "remark 8", vague),
    ]
)


def kills_its_worker(terms: int) -> dict[str, int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return count(terms)


deadly = Registry(
    experiments=[
        *(summed(f"D-{number}", "beside a killer", "-", basel) for number in range(4)),
        summed(
            "D-KILL", "a killed worker takes nobody with it", "-", basel, 9, cell=kills_its_worker
        ),
    ]
)


def runs_at_once(terms: int) -> dict[str, int]:
    with (Path(os.environ["LITTLE_PAPERS"]) / "short").open("a") as stream:
        stream.write("ran\n")
    return count(terms)


def waits(terms: int) -> dict[str, int]:
    folder = Path(os.environ["LITTLE_PAPERS"])
    (folder / "pid").write_text(str(os.getpid()))
    for _ in range(6000):  # it ends by itself if nobody ends it
        if (folder / "hurry").exists():
            break
        time.sleep(0.1)
    return count(terms)


patient = Registry(  # its cells leave traces in the folder that LITTLE_PAPERS names
    experiments=[
        summed("P-SHORT", "soon over", "-", basel, cell=runs_at_once),
        summed("P-LONG", "patience is rewarded", "-", basel, 600, cell=waits),
    ]
)


def blas_threads() -> set[int]:
    """How many threads each loaded BLAS takes."""
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def most_threads(terms: int) -> dict[str, int]:
    return {"number": max(blas_threads())}


def counts_threads(dataset) -> Evidence:
    checks = {"BLAS threads": within(int(dataset.number), 1)}
    return Evidence(ran="threadpoolctl", checks=checks, controls={"two threads": 2})


threads = Registry(
    experiments=[
        summed(f"T-{n}", "BLAS has one thread", "-", counts_threads, cell=most_threads)
        for n in range(2)
    ]
)


def broken_cell(terms: int) -> dict[str, int]:
    raise ValueError("this cell is broken")


LINES: list[int] = []  # one entry for every time that the cell below was computed


def leaves_a_line(terms: int) -> dict[str, int]:
    LINES.append(terms)
    return count(terms)
