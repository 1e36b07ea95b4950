"""A little ledger of claims about numbers, for the tests of the machinery around claims."""

from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np

from tacit.claims import Check, Evidence, Plot, Series, Size
from tacit.claims.registry import Registry

ledger = Registry()
claim = ledger.claim


@claim("A-SUM", statement="1 + 1/4 + 1/9 + ... = pi^2 / 6", place="section 1", seconds=3)
def basel(size: Size) -> Evidence:
    terms = {"quick": 20_000, "full": 200_000}[size]
    k = np.arange(1, terms)
    partial = np.cumsum(1.0 / k**2)
    error = np.abs(partial - np.pi**2 / 6)
    check = Check("distance to pi^2/6", error[-1], tolerance=1e-4)
    slope = np.polyfit(np.log(k[100:]), np.log(error[100:]), 1)[0]
    order = Check("order of convergence", slope, predicted=-1.0, tolerance=0.05)
    shown = slice(None, None, 199)
    return Evidence(
        ran=f"partial sums of {terms} terms in float64",
        checks=[check, order],
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


@claim("A-MEAN", statement="the sum of 1 .. n is n(n - 1)/2", place="section 2, equation (3)")
def sum_of_integers(size: Size) -> Evidence:
    n = np.arange(1, 200)
    sums = np.cumsum(n)
    printed = Check("largest error of n(n - 1)/2", np.abs(sums - n * (n - 1) / 2).max())
    mended = Check("largest error of n(n + 1)/2", np.abs(sums - n * (n + 1) / 2).max())
    return Evidence(
        ran="n from 1 to 199, exact integers",
        checks=[printed],
        corrected=[mended],
        correction="the sum is n(n + 1)/2: the sign in front of 1 is a misprint",
        counterexample={"n": np.int64(3), "sum": np.int64(6), "printed formula": np.float64(3.0)},
        controls={"n^2 / 2": np.abs(sums - n**2 / 2).max()},
    )


@claim("B-FALSE", statement="every <odd> number & its square are prime", place="remark 7")
def odd_is_prime(size: Size) -> Evidence:
    composite = Check("odd numbers below 30 that are not prime", 5, kind="at most")
    return Evidence(ran="odd numbers below 30", checks=[composite], controls={"even": 14})


@claim("B-VAGUE", statement="2.2 is close to its square root", place="remark 8")
def vague(size: Size) -> Evidence:
    check = Check("distance", 2.2 - 2.2**0.5, tolerance=1.0)
    return Evidence(ran="one number", checks=[check], controls={"3 in place of 2.2": 0.8})


@claim("B-STOP", statement="division by zero is possible", place="remark 9")
def stops(size: Size) -> Evidence:
    warnings.warn("about to divide", RuntimeWarning, stacklevel=1)
    return Evidence(ran="", checks=[Check("quotient", 1 / 0)])


deadly = Registry()


@deadly.claim("D-KILL", statement="a killed worker takes nobody with it", place="-", seconds=9)
def kills_its_worker(size: Size) -> Evidence:
    os.kill(os.getpid(), signal.SIGKILL)
    return Evidence(ran="never")


for number in range(4):
    deadly.claim(f"D-{number}", statement="beside a killer", place="-")(basel)


patient = Registry()  # its claims leave traces in the folder that LITTLE_LEDGER names


@patient.claim("P-SHORT", statement="soon over", place="-")
def runs_at_once(size: Size) -> Evidence:
    with (Path(os.environ["LITTLE_LEDGER"]) / "short").open("a") as stream:
        stream.write("ran\n")
    return basel(size)


@patient.claim("P-LONG", statement="patience is rewarded", place="-", seconds=600)
def waits(size: Size) -> Evidence:
    folder = Path(os.environ["LITTLE_LEDGER"])
    (folder / "pid").write_text(str(os.getpid()))
    for _ in range(6000):  # it ends by itself if nobody ends it
        if (folder / "hurry").exists():
            break
        time.sleep(0.1)
    return basel(size)


threads = Registry()


def blas_threads() -> set[int]:
    """How many threads each loaded BLAS takes."""
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def counts_threads(size: Size) -> Evidence:
    check = Check("BLAS threads", max(blas_threads()), predicted=1)
    return Evidence(ran="threadpoolctl", checks=[check], controls={"two threads": 2})


for number in range(2):
    threads.claim(f"T-{number}", statement="BLAS has one thread", place="-")(counts_threads)
