"""All views, in the order of the menu."""

from __future__ import annotations

from penchant.explore.state import View
from penchant.explore.views import grokking, regression, regularizer, sphere
from penchant.explore.views.own_data import own_data_view as own_data_view
from penchant.explore.views.watched import watch_view as watch_view


def theory_views() -> dict[str, View]:
    """The views that need no file, by name."""
    return {
        view.name: view for view in (regularizer.VIEW, sphere.VIEW, regression.VIEW, grokking.VIEW)
    }
