"""The style of every picture, and the page that it is drawn for.

The style is the file style.mplstyle, `plt.style.use("penchant.plotting.style")` for anyone. A
picture for a paper is drawn at its size in the paper, with the smaller type of a column, since
letters that are placed while drawing would not fit any more if it were scaled afterwards.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from penchant.arguments import flag, positive
from penchant.door import Invalid, door, door_as

FILE = Path(__file__).with_name("style.mplstyle")
LEAST, MOST = 1.5, 40.0  # inches that a page may be wide
IN_A_COLUMN: dict[str, Any] = {
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "figure.titlesize": 9,
    "font.size": 8,
    "grid.linewidth": 0.4,
    "legend.fontsize": 7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


@dataclasses.dataclass(frozen=True)
class Page:
    """How wide a picture is in inches, None for its own width; `bare` has no title and caption."""

    width: float | None = None
    bare: bool = False

    @door_as("for_paper")
    def __post_init__(self) -> None:
        flag("bare", self.bare)
        if self.width is not None and not LEAST <= positive("width", self.width) <= MOST:
            raise Invalid(f"width must be {LEAST} to {MOST:g} inches, got {self.width:g}")


_page: contextvars.ContextVar[Page | None] = contextvars.ContextVar("page", default=None)


def page() -> Page:
    """The page of pictures that are drawn now."""
    return _page.get() or Page()


@door
def for_paper(width: float | None = 3.25, *, bare: bool = True) -> AbstractContextManager[None]:
    """A context in which pictures are drawn for a paper: narrow, in small type, bare.

    Parameters
    ----------
    width
        The width in inches, 3.25 for a column; None keeps the width of each picture.
    bare
        Whether title and caption are left out, which the paper prints as text.

    Examples
    --------
    >>> import penchant
    >>> solution = penchant.interpolate([[1.0, 2.0]], [2.0], penchant.L1())
    >>> with penchant.plotting.for_paper(3.25):
    ...     figure = solution.plot()
    >>> figure.get_figwidth(), figure.get_suptitle()
    (3.25, '')
    """
    return _drawn_on(Page(width, bare))


@contextlib.contextmanager
def _drawn_on(chosen: Page) -> Iterator[None]:
    token = _page.set(chosen)
    try:
        with styled():
            yield
    finally:
        _page.reset(token)


def styled() -> AbstractContextManager[None]:
    """A context in which matplotlib draws and saves in this style; the style ends with it."""
    return styled_for(page())


def styled_for(chosen_page: Page) -> AbstractContextManager[None]:
    """The same for the page that a picture was made for."""
    from matplotlib import rc_context

    narrow = chosen_page.width is not None
    chosen: Any = {**parameters(), **(IN_A_COLUMN if narrow else {})}
    return rc_context(chosen)


@functools.cache
def parameters() -> Any:
    """The parameters of matplotlib that the style sets."""
    from matplotlib import rc_params_from_file

    return rc_params_from_file(FILE, use_default_template=False)
