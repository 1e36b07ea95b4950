"""Recorded runs with settings drawn at random, rules that say when they grok, and their scores.

    fit, judged = half_of("fit"), half_of("judged")
    print(tally(answers(calibrated(rule, fit), judged)))

scores a `rule(seen, now)`, a function of a run that is cut at the step `now`: `seen.curves` are its
records until then, `seen.moments.t_mem` its memorization, `seen.run` its setting. It returns
`Said(step)`, `Said(step, low, high)`, or `Said()`, a refusal.
"""

from penchant_papers.probe.bench.recorded import half_of, runs
from penchant_papers.probe.bench.scores import answers, calibrated, tally
from penchant_papers.probe.forecast_rules import Said

__all__ = ["Said", "answers", "calibrated", "half_of", "runs", "tally"]
