"""Labels beside points of curves, placed where they cover nothing, or left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array, entries, text, with_parts
from penchant.door import Invalid, door
from penchant.plotting.legends import filled
from penchant.plotting.style import require_axes, require_lengths

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

# typographic points between a point and the middle of the nearest letters
NOTE_DISTANCES = (9.0, 13.0)
AROUND = np.radians([0, 180, 45, 225, 135, 315, 90, 270, 22, 202, 158, 338])  # tried in this order
MARK = 5.0  # typographic points from the middle of a mark to its rim
AIR = 1.5  # typographic points around a text


@dataclasses.dataclass(frozen=True)
class Note:
    """A text for a point of the panel, and how it looks."""

    point: Array
    text: str
    style: dict[str, Any]
    far: Sequence[float] = NOTE_DISTANCES

    @door
    def __post_init__(self) -> None:
        entries("point", self.point, 2, "two coordinates")
        text("text", self.text)
        require_lengths(far=self.far)


@door
def write_beside(
    axes: Axes, notes: Iterable[Note], curves: Sequence[Array], marks: Array | None = None
) -> list[Note]:
    """The notes that were written, each beside its point; earlier ones are placed first.

    None covers a curve, one of the `marks`, the border of the panel or another note. The layout is
    made here, so that places on the sheet are known: nothing may change the panels afterwards.
    """
    require_axes(axes)
    for curve in curves if marks is None else [*curves, marks]:
        if np.ndim(curve) != 2 or np.shape(curve)[1] != 2:
            rule = "curves and marks must be rows of two coordinates"
            raise Invalid(f"{rule}, got shape {np.shape(curve)}")
    picture = axes.get_figure(root=True)
    assert picture is not None
    picture.draw_without_rendering()
    scale = picture.dpi / 72
    dense = np.vstack([np.empty((0, 2)), *(filled(axes.transData.transform(c)) for c in curves)])
    if marks is not None:
        turn = np.radians(np.arange(0, 360, 20))
        ring = MARK * scale * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        dense = np.vstack([dense, *(axes.transData.transform(marks)[:, None] + ring)])
    taken: list[Bbox] = []
    written = []
    for note in notes:
        with_parts("notes", note, "a list of Note", "point", "text", "far")
        frame = _free(axes, note, dense, taken, scale)
        if frame is not None:
            taken.append(frame)
            written.append(note)
    return written


def _free(axes: Axes, note: Note, dense: Array, taken: list[Bbox], scale: float) -> Bbox | None:
    """Write the note at the first free place around its point; its frame, or None without one."""
    style = {"textcoords": "offset points", "ha": "center", "va": "center", **note.style}
    text = axes.annotate(note.text, (note.point[0], note.point[1]), (0, 0), **style)
    text.set_in_layout(False)
    size = np.array(text.get_window_extent().size) / scale
    for far in note.far:
        for angle in AROUND:
            way = np.array([np.cos(angle), np.sin(angle)])
            text.set_position(tuple(way * far + way * (size / 2 - 4).clip(0)))
            frame = text.get_window_extent().padded(AIR * scale)
            inside = axes.bbox.containsx(frame.x0) and axes.bbox.containsx(frame.x1)
            inside = inside and axes.bbox.containsy(frame.y0) and axes.bbox.containsy(frame.y1)
            if inside and not frame.count_contains(dense) and not frame.count_overlaps(taken):
                return frame
    text.remove()
    return None
