"""Statuses, verdicts, their JSON, the registry and the parallel runner."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import little_papers
from little_papers import blas_threads, sum_of_integers, summed
from penchant import verify
from penchant.lab import (
    Check,
    Evidence,
    Experiment,
    Plot,
    Premise,
    Registry,
    Series,
    Verdict,
    Verdicts,
    at_least,
    at_most,
    share_at_least,
    upper_share,
    within,
)
from penchant.lab.evidence import verdict_json
from penchant.lab.evidence.evidence import judge
from penchant.lab.studies.engines.named import cores
from penchant.lab.verification import choose, gather_verdicts, run_experiments

some = settings(deadline=None, derandomize=True, max_examples=300)


# --- one check -----------------------------------------------------------------------------


@some
@given(
    st.integers(-6, 6),
    st.integers(-6, 6),
    st.integers(0, 6),
    st.sampled_from(["error", "at most", "at least"]),
)
def test_a_check_obeys_its_rule_in_exact_arithmetic(measured, predicted, tolerance, kind):
    inside = {
        "error": measured in range(predicted - tolerance, predicted + tolerance + 1),
        "at most": measured < predicted + tolerance + 1,
        "at least": measured > predicted - tolerance - 1,
    }[kind]
    check = Check("c", measured, predicted, tolerance, kind)
    assert (check.passes, check.misses) == (inside, not inside)
    assert any(sign in check.sentence for sign in ("≤≥" if inside else "<>"))


@pytest.mark.parametrize("kind", ["error", "at most", "at least"])
def test_nan_neither_passes_nor_misses(kind):
    for check in (Check("c", math.nan, 0, 1, kind), Check("c", 0, math.nan, 1, kind)):
        assert not check.passes
        assert not check.misses
        assert "is inconclusive" in check.sentence


def test_an_infinite_measurement_never_passes():
    assert not Check("the smallest of no slacks", math.inf, 1, kind="at least").passes
    assert not Check("the largest of no errors", -math.inf, 1, kind="at most").passes
    assert Check("diverged", math.inf, 0, 1).misses


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measured": "much"}, "measured must be one real number"),
        ({"measured": np.zeros(3)}, "measured must be one real number"),
        ({"measured": 1j}, "measured must be one real number"),
        ({"tolerance": -1}, "tolerance must be finite and >= 0"),
        ({"tolerance": math.nan}, "tolerance must be finite and >= 0"),
        ({"tolerance": math.inf}, "tolerance must be finite and >= 0"),
        ({"kind": "at mots"}, "did you mean .*at most"),
    ],
)
def test_a_check_refuses_what_cannot_be_compared(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Check(**{"name": "c", "measured": 1.0, **wrong})


# --- the status ----------------------------------------------------------------------------

OUTCOMES = {"pass": 0.5, "miss": 2.0, "unknown": math.nan}


def evidence(printed=(), corrected=(), premises=(), controls=(), proof=()):
    """Evidence with the outcomes named, all under the rule |measured| <= 1."""

    def checks(names, kind="check"):
        return {f"{kind} {i}": within(OUTCOMES[n], tolerance=1) for i, n in enumerate(names)}

    rule = within(0.0, tolerance=1)
    return Evidence(
        ran="nothing",
        checks=checks(printed),
        proof=checks(proof, "line"),
        corrected=checks(corrected, "mended"),
        correction="better words" if corrected else None,
        premises={f"premise {i}": holds for i, holds in enumerate(premises)},
        controls={f"wrong {i}": rule.control(OUTCOMES[n]) for i, n in enumerate(controls)}
        if printed or corrected or proof
        else {},
    )


def expected(printed, corrected, premises, controls, proof):
    """The status by a table of cases, written without looking at `judge`."""
    spoiled = False in premises or "pass" in controls or "unknown" in controls
    if spoiled or not printed:
        return "inconclusive"
    decided = [*printed, *proof]
    good = "holds"
    if corrected and "miss" in proof:
        decided, good = [*printed, *corrected], "holds, proof corrected"
    elif corrected and "miss" in printed and not proof:
        decided, good = list(corrected), "holds as corrected"
    if "miss" in decided:
        return "fails"
    if "unknown" in decided or not controls:
        return "inconclusive"
    return good


outcomes = st.lists(st.sampled_from(list(OUTCOMES)), max_size=3)


@settings(some, max_examples=800)
@given(outcomes, outcomes, st.lists(st.booleans(), max_size=2), outcomes, outcomes)
def test_the_status_follows_from_the_outcomes(printed, corrected, premises, controls, proof):
    if not (printed or corrected or proof):
        controls = []
    status, reason = judge(evidence(printed, corrected, premises, controls, proof))
    assert status == expected(printed, corrected, premises, controls, proof)
    assert reason


CASES = {
    "holds": evidence(["pass"], controls=["miss"]),
    "holds, proof corrected": evidence(["pass"], ["pass"], proof=["miss"], controls=["miss"]),
    "holds as corrected": evidence(["miss"], ["pass"], controls=["miss"]),
    "fails": evidence(["pass", "miss"], controls=["miss"]),
    "inconclusive": evidence(["pass"], premises=[False], controls=["miss"]),
}


@pytest.mark.parametrize(
    "made", [lambda m: 2 * m, lambda m: m / 10, lambda m: 1 / m, lambda m: m + 0.5, lambda m: 3 - m]
)
def test_a_control_that_is_arithmetic_on_a_measured_number_is_named(made):
    check = within(0.123456789, tolerance=0.2)
    controls = {"made": made(0.123456789), "trained": check.control(0.987654321)}
    seen = Evidence("a run", {"distance": check}, controls=controls)
    assert seen.arithmetic == ["made"]


def test_arithmetic_alone_guards_nothing():
    check = within(0.123456789, tolerance=0.2)
    made = Evidence("a run", {"distance": check}, controls={"twice": 2 * check.measured})
    assert judge(made) == (
        "inconclusive",
        "no control shows that a wrong theorem would miss the tolerance",
    )
    beside = {"twice": 2 * check.measured, "trained": check.control(0.987654321)}
    assert judge(Evidence("a run", {"distance": check}, controls=beside))[0] == "holds"


def test_counts_and_other_predictions_are_not_arithmetic():
    count = within(0.0, tolerance=0.5)
    share = within(0.115, tolerance=0.2)
    rate = within(-1.98765, -2.0, tolerance=0.1)
    checks = {"runs that fail": count, "share of 200 images": share, "exponent": rate}
    controls = {
        "all fail": count.control(4.0),
        "other images": share.control(0.23),
        "exponent -1": rate.control(predicted=-1.0),
    }
    assert Evidence("a run", checks, controls=controls).arithmetic == []


@pytest.mark.parametrize("cases", [1, 7, 20, 500])
def test_bounds_of_shares_that_add_up_to_one_are_not_arithmetic(cases):
    """All of some runs and none of as many others: two measurements whose bounds add up to 1."""
    check = share_at_least(cases, cases, 0.0)
    none = check.control(upper_share(0, cases))
    assert Evidence("a run", {"share": check}, controls={"none": none}).arithmetic == []
    made = {"made": check.control(1 - share_at_least(cases, cases + 1, 0.0).measured)}
    most = {"share": share_at_least(cases, cases + 1, 0.0)}
    assert Evidence("a run", most, controls=made).arithmetic == ["made"]


@pytest.mark.parametrize("tiny", [1e-17, 1e-300, 3.1234e-9])
def test_tiny_numbers_are_no_bounds_of_shares(tiny):
    check = within(tiny, tolerance=0.2)
    seen = Evidence("a run", {"distance": check}, controls={"made": check.control(2 * tiny)})
    assert seen.arithmetic == ["made"]


def test_a_mended_proof_does_not_save_a_statement_that_misses():
    assert judge(evidence(["miss"], ["pass"], proof=["miss"], controls=["miss"]))[0] == "fails"


@pytest.mark.parametrize("status", CASES)
def test_every_status_can_be_reached(status):
    assert Verdict("T-1", "s", "p", CASES[status]).status == status


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (evidence(["pass"]), "no control"),
        (evidence(["pass"], controls=["pass"]), "the control passes too: wrong 0"),
        (evidence(["pass"], controls=["miss", "unknown"]), "the control was not measured"),
        (evidence(["pass"], premises=[True, False], controls=["miss"]), "premise not met"),
        (evidence(["unknown"], controls=["miss"]), "is inconclusive"),
        (evidence(), "nothing was checked"),
    ],
)
def test_an_inconclusive_verdict_says_why(case, reason):
    status, explanation = judge(case)
    assert status == "inconclusive"
    assert reason in explanation


def test_the_status_cannot_be_passed_in_or_changed():
    with pytest.raises(TypeError):
        Verdict("T-1", "s", "p", CASES["fails"], status="holds")
    verdict = Verdict("T-1", "s", "p", CASES["fails"])
    with pytest.raises(AttributeError):
        verdict.status = "holds"
    assert dataclasses.replace(verdict, evidence=CASES["holds"]).status == "holds"


def test_a_control_of_the_printed_rule_does_not_guard_the_correction():
    printed, corrected = within(2.0, tolerance=1), within(0.0, tolerance=0.5)
    common = {"ran": "", "checks": {"printed": printed}, "correction": "better"}
    common["corrected"] = {"corrected": corrected}
    assert judge(Evidence(**common, controls={"wrong": printed.control(3)}))[0] == "inconclusive"
    assert judge(Evidence(**common, controls={"wrong": corrected.control(3)}))[0] != "inconclusive"
    # A bare number is held against the statement that decides, here the corrected one.
    assert Evidence(**common, controls={"wrong": 0.7}).controls["wrong"].tolerance == 0.5


def test_a_control_may_change_the_prediction_but_not_the_rule():
    slope = within(-1.01, -1, tolerance=0.1)
    checks = {"slope": slope}
    found = Evidence(ran="", checks=checks, controls={"slope 2": slope.control(predicted=-2)})
    assert judge(found)[0] == "holds"
    stricter = within(-1.01, -1, tolerance=1e-9)
    with pytest.raises(ValueError, match="no check has its rule"):
        Evidence(ran="", checks=checks, controls={"judged more strictly": stricter})


def test_a_check_is_named_by_the_evidence_that_holds_it():
    checks = {"near": within(1.5, 1, 0.5), "low": at_most(1, 2), "high": at_least(3, 2, 1)}
    found = Evidence(ran="", checks=checks, controls={"wrong": checks["low"].control(4)})
    named = [Check("near", 1.5, 1, 0.5), Check("low", 1, 2, kind="at most")]
    named.append(Check("high", 3, 2, 1, "at least"))
    assert list(found.checks.items()) == [(check.name, check) for check in named]
    assert dataclasses.replace(found, findings=["more"]).checks == found.checks
    assert judge(found)[0] == "holds"
    with pytest.raises(ValueError, match=r"^Check: tolerance must be finite"):
        within(1.0, tolerance=-1)


def test_evidence_refuses_half_a_correction_and_equal_names():
    checks, others = {"c": within(1.0, tolerance=2)}, {"d": within(1.0, tolerance=2)}
    with pytest.raises(ValueError, match="correction is missing"):
        Evidence(ran="", checks=checks, corrected=checks)
    with pytest.raises(ValueError, match="corrected is missing"):
        Evidence(ran="", checks=checks, correction="words without numbers")
    with pytest.raises(ValueError, match="names must differ, got c twice"):
        Evidence(ran="", checks=checks, proof=checks)
    with pytest.raises(ValueError, match="names must differ, got c twice"):
        Evidence(ran="", checks=checks, proof=others, corrected=checks, correction="better")
    Evidence(ran="", checks=checks, proof=others, corrected=others, correction="better")
    Evidence(ran="", checks=checks, corrected=checks, correction="better")
    with pytest.raises(ValueError, match="no check to be compared with"):
        Evidence(ran="", controls={"wrong": 1.0})


@pytest.mark.parametrize("part", ["checks", "proof", "corrected"])
@pytest.mark.parametrize("given", [[Check("c", 1.0)], (Check("c", 1.0),), [], Check("c", 1.0)])
def test_checks_without_a_mapping_are_refused(part, given):
    seen = type(given).__name__
    rule = f"^Evidence: {part} must map names to checks, got {seen}; write .*at_most"
    with pytest.raises(ValueError, match=rule):
        Evidence(**{"ran": "", part: given})


# --- verdicts ------------------------------------------------------------------------------


def test_a_verdict_reads_like_the_design_says():
    verdict = verify("a-sum", registry=little_papers.library)
    assert verdict.id == "A-SUM"
    assert verdict.status == "holds"
    assert verdict.tolerance == {"distance to pi^2/6": 1e-4, "order of convergence": 0.05}
    assert verdict.predicted["order of convergence"] == -1
    assert verdict.controls["pi^2 / 8 in place of pi^2 / 6"] == pytest.approx(0.41, abs=0.01)
    assert verdict.premises["the terms fall"].holds is True
    assert verdict.figures[0].series[1].style == "dashed"
    assert verdict.counterexample is None
    assert verdict.seconds > 0
    for word in ("A-SUM", "✓ holds", "section 1", "20000 terms"):
        assert word in str(verdict)
        assert word in verdict._repr_html_()


def test_one_check_gives_plain_numbers():
    verdict = verify("B-VAGUE", registry=little_papers.library)
    assert (verdict.measured, verdict.predicted, verdict.tolerance) == (2.2 - 2.2**0.5, 0.0, 1.0)


def test_a_corrected_verdict_keeps_the_counterexample():
    verdict = verify("A-MEAN", registry=little_papers.library)
    assert verdict.status == "holds as corrected"
    assert verdict.counterexample == {"n": 3, "sum": 6, "printed formula": 3.0}
    assert verdict.measured == 0
    without = dataclasses.replace(verdict.evidence, counterexample=None)
    stored = dataclasses.replace(verdict, evidence=without).counterexample
    assert stored == {"largest error of n(n - 1)/2": "199 > 0"}


def test_verdicts_are_a_sequence_that_prints_as_a_table():
    found = verify("A", registry=little_papers.library)
    assert isinstance(found, Verdicts)
    assert [verdict.id for verdict in found] == ["A-MEAN", "A-SUM"]
    assert found["a-mean"] is found[0]
    assert len(found[:1]) == 1
    assert found.status == "holds as corrected"
    assert found.ok
    lines = str(found).splitlines()
    assert len(lines) == 3
    assert re.match(r"✓  A-SUM +holds ", lines[2])
    assert "<td>A-SUM</td>" in found._repr_html_()
    with pytest.raises(ValueError, match=r"did you mean .*A-SUM"):
        found["A-SUN"]


def test_the_worst_status_counts_for_all():
    assert verify(registry=little_papers.library).status == "fails"
    assert verify(["A", "B-VAGUE"], registry=little_papers.library).status == "inconclusive"
    assert not Verdicts(()).ok  # nothing was run, so nothing holds


# --- running -------------------------------------------------------------------------------


def only(check):
    """A registry of one experiment."""
    return Registry(experiments=[summed("T-1", "s", "p", check)])


@pytest.mark.filterwarnings("default")
def test_an_experiment_that_raises_is_inconclusive_and_says_so():
    verdict = verify("B-STOP", registry=little_papers.library)
    assert verdict.status == "inconclusive"
    assert verdict.premises["ran to the end"].holds is False
    assert "ZeroDivisionError: division by zero (little_papers.py, line" in verdict.findings[0]
    assert verdict.findings[1] == "RuntimeWarning: about to divide"


def test_an_experiment_must_return_evidence():
    verdict = verify("T-1", registry=only(lambda dataset: 42))
    assert verdict.status == "inconclusive"
    assert "the experiment returned int" in verdict.reason


def test_ctrl_c_is_not_taken_for_evidence():
    def interrupted(dataset):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify("T-1", registry=only(interrupted))


def test_the_printed_size_takes_larger_instances():
    sizes = ("quick", "printed")
    quick, printed = (verify("A-SUM", size=s, registry=little_papers.library) for s in sizes)
    assert (quick.size, printed.size) == sizes
    assert "200000 terms" in printed.ran
    error = "distance to pi^2/6"
    assert printed.evidence.checks[error].measured < quick.evidence.checks[error].measured / 5
    assert printed.command == "penchant verify A-SUM --size printed"


def test_claims_run_on_one_blas_thread():
    import scipy.linalg  # noqa: F401  (a BLAS of its own, to be counted from the start)
    from threadpoolctl import threadpool_limits

    seen = []
    book = only(lambda dataset: seen.append(blas_threads()))
    with threadpool_limits(2):
        before = blas_threads()
        assert 2 in before  # a library built for one thread may stand beside
        verify("T-1", registry=book)
        assert blas_threads() == before
    assert seen == [{1}]


def test_the_longest_claim_starts_first():
    order = []
    book = [
        summed(name, "s", "p", lambda dataset, name=name: order.append(name), seconds)
        for name, seconds in (("T-1", 1.0), ("T-2", 30.0), ("T-3", 2.0))
    ]
    found = gather_verdicts(book, jobs=1)
    assert order == ["T-2", "T-3", "T-1"]
    assert [verdict.id for verdict in found] == ["T-1", "T-2", "T-3"]


def test_a_worker_goes_on_with_its_paper_and_then_helps_where_most_is_left():
    rows = [("A-1", 5), ("B-1", 4), ("A-2", 3), ("C-1", 2), ("B-2", 1), ("C-2", 1)]
    claims = {name: summed(name, "s", "p", None, seconds) for name, seconds in rows}
    queue = list(claims.values())

    def given(paper, *others):
        return choose(queue, paper, [claims[name].source for name in others]).id

    assert given("") == "A-1"  # 8 s of A, 5 of B, 3 of C
    assert given("", "A-1") == "B-1"  # A has a worker, so its 3 s count half
    assert given("A", "B-1") == "A-2"
    assert given("A", "B-1") == "C-1"  # nothing is left of A
    assert given("B", "C-1") == "B-2"
    assert given("B", "C-1") == "C-2"
    assert queue == []


def workers():
    """The processes that this one has started, and that run the pool's code."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"engines.pool" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@pytest.mark.filterwarnings("default")
def test_workers_find_what_one_process_finds():
    claims = little_papers.library.experiments()
    alone, arrived = gather_verdicts(claims, jobs=1), []
    together = gather_verdicts(claims, jobs=2, progress=arrived.append)
    assert sorted(v.id for v in arrived) == sorted(claim.id for claim in claims)
    timeless = [dataclasses.replace(verdict, seconds=0.0) for verdict in alone]
    assert [dataclasses.replace(verdict, seconds=0.0) for verdict in together] == timeless
    assert not workers()


def test_a_killed_worker_takes_nobody_with_it():
    found = gather_verdicts(little_papers.deadly.experiments(), jobs=2)
    assert [verdict.status for verdict in found] == [*["holds"] * 4, "inconclusive"]
    assert "killed by signal 9" in found["D-KILL"].findings[0]
    assert not workers()


def test_a_caller_that_stops_early_leaves_no_worker_behind():
    verdicts = run_experiments(little_papers.deadly.experiments(), jobs=2)
    next(verdicts)
    assert workers()
    verdicts.close()
    assert not workers()


def test_an_experiment_of_a_script_runs_in_this_process(monkeypatch):
    claims = little_papers.library.select(["A", "B-VAGUE"])
    alone = gather_verdicts(claims, jobs=1)
    run, ran_here = Experiment.run, []

    def noted(experiment, setting):
        ran_here.append(experiment.id)
        return run(experiment, setting)

    monkeypatch.setattr(sum_of_integers, "__module__", "__main__")
    monkeypatch.setattr(Experiment, "run", noted)
    together = gather_verdicts(claims, jobs=2)
    assert ran_here == ["A-MEAN"]
    assert [verdict.status for verdict in together] == [verdict.status for verdict in alone]


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "two"])
def test_jobs_must_be_a_number_of_processes(jobs):
    with pytest.raises(ValueError, match="verify: jobs must be"):
        run_experiments([], jobs=jobs)
    assert cores() >= 1


# --- the registry --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ("a-sum", ["A-SUM"]),
        (" A-Sum ", ["A-SUM"]),
        ("a", ["A-MEAN", "A-SUM"]),
        (["B-STOP", "a-sum", "A-SUM"], ["A-SUM", "B-STOP"]),
        (None, ["A-MEAN", "A-SUM", "B-FALSE", "B-STOP", "B-VAGUE"]),
    ],
)
def test_claims_are_chosen_by_id_or_source(names, ids):
    assert [claim.id for claim in little_papers.library.select(names)] == ids


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("A-SUN", "verify: unknown claim id 'A-SUN'; did you mean .*A-SUM"),
        (["A-SUM", "b-flase"], "unknown claim id 'b-flase'; did you mean .*B-FALSE"),
        ("A-", "unknown claim id 'A-'"),
        ("", "unknown claim id ''"),
        ([], "no claim id given"),
        ([3], "must be a string, got 3"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(names, sentence):
    with pytest.raises(ValueError, match=sentence):
        little_papers.library.select(names)


def test_an_id_is_given_once_and_with_its_place():
    one = summed("T-1", "s", "p", print)
    with pytest.raises(ValueError, match="'T-1' is given twice"):
        Registry(experiments=[one, one])
    with pytest.raises(ValueError, match="T-2 needs a statement and its place"):
        summed("T-2", "s", " ", print)


def test_a_listed_experiment_is_imported_on_first_use(tmp_path, monkeypatch):
    (tmp_path / "one_of_test.py").write_text(
        "from little_papers import summed\nexperiment = summed('T-1', 's', 'p', print)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    book = Registry({"T-1": "one_of_test", "T-2": "nowhere_of_test"})
    assert book.ids == ("T-1", "T-2")
    assert book.select("t-1")[0].statement == "s"
    with pytest.raises(ModuleNotFoundError):
        book.experiments()


# --- cells ---------------------------------------------------------------------------------


def test_a_failed_cell_makes_the_verdict_undecided_with_its_sentence():
    verdict = verify("T-1", registry=Registry(experiments=[_with_cell("broken_cell")]))
    assert verdict.status == "inconclusive"
    assert "the first says: this cell is broken" in verdict.reason


def _with_cell(name):
    return summed("T-1", "s", "p", little_papers.basel, cell=getattr(little_papers, name))


def test_finished_cells_are_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(little_papers, "LINES", [])
    book = Registry(experiments=[_with_cell("leaves_a_line")])
    first = verify("T-1", folder=tmp_path, registry=book)
    again = verify("T-1", folder=tmp_path, registry=book)
    assert first.evidence == again.evidence
    assert little_papers.LINES == [20_000]
    verify("T-1", folder=tmp_path / "elsewhere", registry=book)
    assert little_papers.LINES == [20_000, 20_000]


# --- JSON ----------------------------------------------------------------------------------

numbers = st.floats(allow_nan=True, allow_infinity=True)
texts = st.text(max_size=8)
stored = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
series = st.lists(st.tuples(numbers, numbers), max_size=4).map(
    lambda pairs: Series("s", [x for x, _ in pairs], np.array([y for _, y in pairs]), "points")
)
plots = st.builds(Plot, texts, texts, texts, st.lists(series, max_size=2), st.just("log"))


@st.composite
def verdicts(draw):
    check = at_most(np.float64(draw(numbers)), draw(numbers), 0.5)
    corrected = draw(st.booleans())
    found = Evidence(
        ran=draw(texts),
        checks={"check": check},
        corrected={"check": check.control(draw(numbers))} if corrected else {},
        correction="so" if corrected else None,
        premises={draw(texts): Premise(draw(st.booleans()), draw(numbers | texts))},
        controls={draw(texts): draw(numbers)},
        counterexample=draw(st.none() | texts | st.dictionaries(texts, stored, max_size=3)),
        findings=draw(st.lists(texts, max_size=2)),
        plots=draw(st.lists(plots, max_size=1)),
    )
    own = {"scope": draw(texts), "shift": draw(st.integers(0, 9)), "seconds": draw(st.floats(0, 9))}
    return Verdict("T-1", draw(texts), draw(texts), found, "printed", **own)


@settings(some, max_examples=150)
@given(st.lists(verdicts(), max_size=2))
def test_json_keeps_everything(items):
    before = Verdicts(tuple(items), {"numpy": "2"})
    text = verdict_json.dumps(before)
    after = verdict_json.loads(text)
    assert str(dataclasses.asdict(after)) == str(dataclasses.asdict(before))  # NaN is not itself
    assert verdict_json.dumps(after) == text
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_numpy_values_survive_json():
    found = Evidence(
        ran="",
        checks={"c": within(np.float64(1e-300), np.int32(0), np.float32(0.5))},
        counterexample={"w": np.arange(3.0), "n": np.int64(2), "flag": np.True_, "t": (1, 2)},
        premises={"p": (np.True_, np.float64(2.0))},
        controls={"wrong": np.float64(np.inf)},
    )
    text = verdict_json.dumps(Verdicts((Verdict("T-1", "s", "p", found),)))
    again = verdict_json.loads(text)[0]
    assert again.counterexample == {"w": [0.0, 1.0, 2.0], "n": 2, "flag": True, "t": [1, 2]}
    assert again.controls == {"wrong": math.inf}
    assert again.measured == 1e-300
    assert again.status == "holds"


def test_damaged_foreign_and_edited_files_are_refused_by_name():
    text = verdict_json.dumps(gather_verdicts(little_papers.library.select("A"), jobs=1))
    assert verdict_json.loads(text, "here.json").ok
    edited = text.replace('"status": "holds"', '"status": "fails"', 1)
    refused = {
        "cut short": text[: len(text) // 2],
        "empty": "",
        "foreign": '{"format": "something else"}',
        "a list": "[1, 2]",
        "edited": edited,
        "a key lost": text.replace('"ran"', '"run"', 1),
    }
    assert edited != text
    for content in refused.values():
        with pytest.raises(ValueError, match=r"here\.json"):
            verdict_json.loads(content, "here.json")
    with pytest.raises(ValueError, match="its own numbers give 'holds'"):
        verdict_json.loads(edited, "here.json")


def test_plots_refuse_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="equally long, got 2 and 1"):
        Series("s", [1, 2], [1])
    with pytest.raises(ValueError, match="one-dimensional"):
        Series("s", np.zeros((2, 2)), [1])
    with pytest.raises(ValueError, match="did you mean line"):
        Series("s", [1], [1], "lines")
    with pytest.raises(ValueError, match="x_scale"):
        Plot("t", "x", "y", [], x_scale="cubic")
