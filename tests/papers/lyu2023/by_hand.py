"""Training of u^2 - v^2 under weight decay by a general integrator."""

import numpy as np
from scipy.integrate import solve_ivp


def descend(Z, norm, rate, times):
    """(u, v) at `times` by integrating theta' = -grad(mean logistic loss) - rate * theta itself."""
    dimension = Z.shape[1]

    def velocity(_, theta):
        u, v = theta[:dimension], theta[dimension:]
        pull = (1 / (1 + np.exp(Z @ (u**2 - v**2)))) @ Z / len(Z)
        return np.concatenate([2 * u * pull, -2 * v * pull]) - rate * theta

    start = np.full(2 * dimension, norm / np.sqrt(2 * dimension))
    found = solve_ivp(
        velocity, (0, times[-1]), start, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11
    )
    return found.y.T
