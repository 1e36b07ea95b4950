"""Small gathered studies for the tests of `penchant explore`."""

import json

import numpy as np
import xarray

ALPHAS, WIDTHS, SEEDS, TIMES = 4, 3, 2, 6


def made(**attributes):
    """A study as `penchant run` gathers it, with one failed cell."""
    shape = (ALPHAS, WIDTHS, SEEDS)
    dims = ("alpha", "width", "seed")
    error = np.arange(np.prod(shape), dtype=float).reshape(shape)
    status = np.full(shape, "solved", dtype="U8")
    error[1, 2, 0], status[1, 2, 0] = np.nan, "diverged"
    t = np.broadcast_to(np.geomspace(1, 1e6, TIMES), (*shape, TIMES)).copy()
    loss = error[..., None] / np.arange(1, TIMES + 1)
    return xarray.Dataset(
        {
            "error": (dims, error),
            "status": (dims, status),
            "sentence": (dims, np.where(status == "diverged", "it went away", "")),
            "trajectory_t": ((*dims, "time"), t),
            "trajectory_loss": ((*dims, "time"), loss),
        },
        coords={"alpha": [0.01, 0.1, 1.0, 10.0], "width": [8, 16, 32], "seed": [0, 1]},
        attrs={"study": "little", "title": "A little study", **attributes},
    )


def sloped(**draw):
    """A study whose `height` is the sum of the numbers of the column and the row."""
    across, up = np.arange(5.0), np.arange(4.0)
    height = across[:, None] + up
    return xarray.Dataset(
        {
            "other": (("a", "b"), height * 0),
            "height": (("a", "b"), height),
            "product": (("a", "b"), 10.0**height),
            "status": (("a", "b"), np.full(height.shape, "solved")),
        },
        coords={"a": 10.0**across, "b": up},
        attrs={"study": "sloped", "description": json.dumps({"draw": draw})},
    )


def opened(view, **values):
    return view.picture({**view.start, **values})
