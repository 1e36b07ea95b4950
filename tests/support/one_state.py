"""Whether the verdict and the forecast of a record agree."""

from penchant.watch.prediction import LATE_RISES, forecast_jump, verdict


def contradictions(dataset):
    """What verdict and forecast say against each other; the list is empty if nothing is."""
    what, then = verdict(dataset), forecast_jump(dataset)
    odd = []
    if then.event != "test accuracy":
        return odd
    if then.state == "happened" and what.kind == "none":
        odd.append("happened, and no late change")
    if what.kind in LATE_RISES and then.state != "happened" and "known at" not in then.sentence:
        odd.append(f"{what.kind}, and {then.state}")
    if then.ahead and what.kind in (*LATE_RISES, "mirage"):
        odd.append(f"{what.kind}, and ahead")
    if (then.state == "in progress") and what.kind != "in progress":
        odd.append("in progress, and not")
    if then.state == "expected" and what.kind == "in progress":
        odd.append("expected, and in progress")
    if then.state == "happened" and not 0 < then.step <= dataset["call_step"].values[-1]:
        odd.append("happened outside of the run")
    own = "best test value" in what.sentence  # a ceiling of its own has a half of its own
    if then.state == "happened" and what.kind in LATE_RISES and not own and what.jump != then.step:
        odd.append(f"two halves, {what.jump} and {then.step}")
    return odd
