"""All views, in the order of the menu."""

from __future__ import annotations

from penchant.explore import grokking, regression, regularizer, sphere
from penchant.explore.state import View


def theory_views() -> dict[str, View]:
    """The views that need no file, by name."""
    return {
        view.name: view for view in (regularizer.VIEW, sphere.VIEW, regression.VIEW, grokking.VIEW)
    }
