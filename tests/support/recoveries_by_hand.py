"""Recovery with a penalty by plain loops, and the status that an experiment gives to data."""

import numpy as np

from penchant.lab import all_claims
from penchant.lab.evidence.evidence import judge


def judged(id, data):
    """The status of an experiment with these datasets."""
    return judge(all_claims()[id].check(*data))[0]


def descend(case, step, beta, start, steps, penalty):
    """All iterates of subgradient descent with an l1, squared l2 or nuclear penalty, by a loop."""
    a = np.full(len(case.truth), start)
    points = [a]
    for _ in range(steps):
        H = np.sign(a) if penalty == "l1" else 2 * a
        if penalty == "nuclear":
            side = round(len(a) ** 0.5)
            u, s, v = np.linalg.svd(a.reshape(side, side))
            H = ((u * (s > 1e-13 * s[0])) @ v).ravel()
        a = a - step * (case.X.T @ (case.X @ a - case.y) + beta * H)
        points.append(a)
    return np.array(points)


def losses(case, points):
    """(1/2)|X a - y|^2 of every point."""
    return 0.5 * np.sum((points @ case.X.T - case.y) ** 2, axis=1)
