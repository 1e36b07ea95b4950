"""A saved study as a phase diagram: two axes of its grid, a colour, and the cell that is chosen."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from penchant.explore.controls import WHO, Choice, Control, Number
from penchant.explore.picture import Cells, Panel, Picture
from penchant.explore.state import Values, View
from penchant.explore.study.cell import cell_sentence, row, trajectory
from penchant.explore.study.grid import CUT, Grid, grid_of, plain
from penchant.explore.study.layer import NONE, Diagram, Fixed, diagram
from penchant.lab.studies.gather import MISSING, has_failed, is_doubtful
from penchant.mathematics import in_terminal
from penchant.plotting.study.plan import SEED

if TYPE_CHECKING:
    import xarray

SEEDS = {"median": "median of all", "one": "the chosen one"}


def study_view(dataset: xarray.Dataset) -> View:
    """The view of one study."""
    grid = grid_of(dataset)
    if any(len(name) > CUT for name in (*grid.dims, *grid.quantities, *grid.curves)):
        raise ValueError(f"{WHO}: the study has names of more than {CUT} letters")

    @lru_cache(maxsize=16)
    def shown(show: str, x: str, y: str, fixed: Fixed) -> Diagram:
        return diagram(grid, show, x, y, fixed)

    def chosen(values: Values) -> dict[str, int]:
        return {dim: int(float(values.get(f"at{k}", 0))) for k, dim in enumerate(grid.dims)}

    def picture(values: Values) -> Picture:
        position = chosen(values)
        x, y, show = str(values["x"]), str(values["y"]), str(values["show"])
        if x == y:
            raise ValueError(f"{WHO}: choose two different axes, not {x!r} twice")
        free = {x, y} | ({SEED} if values.get("seeds") == "median" and show != "status" else set())
        phases = shown(show, x, y, tuple((d, k) for d, k in position.items() if d not in free))
        cells = _cells(grid, phases, x, y, position)
        panels = [Panel("diagram", "Phase diagram", "", "", phases.lines, cells=cells)]
        if grid.curves:
            panels.append(trajectory(grid, str(values["curve"]), position))
        return Picture((*panels, row(cells, phases)), cell_sentence(grid, show, position))

    def python(values: Values) -> str:
        opened = f"import penchant\n\ndataset = penchant.load({f'{name}.nc'!r})\n"
        return f"{opened}print(dataset.isel({chosen(values)}))\n"

    name, controls = plain(dataset.attrs["study"], 60), controls_of(grid)
    sweep = next((control.name for control in controls if isinstance(control, Number)), "")
    return View("study", f"Study {name}", _words(grid), controls, picture, python, sweep)


def controls_of(grid: Grid) -> tuple[Control, ...]:
    """The controls: the colour, the axes, the curve, and the chosen cell."""
    names = {name: grid.label(name) for name in grid.quantities[:-1]}
    axes = {dim: grid.label(dim) for dim in grid.long}
    (x, y), colour = _first_axes(grid), grid.requested.colour or grid.quantities[0]
    first: list[Control] = [
        Choice("show", "colour", {**names, "status": "how cells ended"}, colour),
        Choice("x", "across", axes, x),
        Choice("y", "up", {NONE: "nothing", **axes}, y),
    ]
    if grid.seeds:
        first.append(Choice("seeds", "seeds in the diagram", SEEDS, "median"))
    if grid.curves:
        words = {name: grid.label(name) for name in grid.curves}
        first.append(Choice("curve", "trajectory", words, grid.curves[0]))
    sizes = zip(grid.dims, grid.dataset.status.shape, strict=True)
    controls = [
        _position_control(grid, k, dim, size) for k, (dim, size) in enumerate(sizes) if size > 1
    ]
    return (*first, *controls)


def _position_control(grid: Grid, number: int, dim: str, size: int) -> Number:
    """The position of the chosen cell on an axis; by default the middle, with the first seed."""
    start, words = 0 if dim == SEED else size // 2, tuple(grid.values(dim))
    return Number(f"at{number}", plain(dim, 30), 0, size - 1, 1, start, words=words)


def _first_axes(grid: Grid) -> tuple[str, str]:
    """The axes that the study names, else the first ones along which something changes."""
    requested, long = grid.requested, grid.long
    x = (
        requested.x
        if requested.x in long
        else next(dim for dim in long if dim != requested.y or len(long) == 1)
    )
    if requested.y in long and requested.y != x:
        return x, str(requested.y)
    return x, next((dim for dim in long if dim not in (x, SEED)), NONE)


def _words(grid: Grid) -> str:
    status, attributes = grid.dataset.status.values, grid.dataset.attrs
    failed, doubtful = (int(where(status).sum()) for where in (has_failed, is_doubtful))
    blank = int((status == MISSING).sum())
    parts = [
        f"{plain(in_terminal(str(attributes.get('title', 'A study'))), 200).rstrip('.')}.",
        f"{status.size - blank} cells{f', {failed} of them failed (crossed out)' * bool(failed)}.",
        f"{doubtful} are doubtful; choose the colour `how cells ended`." if doubtful else "",
        f"{blank} more were not needed (blank)." if blank else "",
        "Click on a cell, or move the sliders, to open it.",
        grid.requested.remark,
    ]
    return " ".join(filter(None, parts))


def _cells(grid: Grid, phases: Diagram, x: str, y: str, position: dict[str, int]) -> Cells:
    return Cells(
        columns=tuple(grid.values(x)),
        rows=tuple(grid.values(y)) if y != NONE else ("",),
        values=phases.numbers,
        span=phases.span,
        failed=phases.failed,
        notes=phases.notes,
        chosen=(position[x], position[y] if y != NONE else 0),
        names=(_control(grid, x), _control(grid, y)),
        colour_label=phases.label,
        column_label=plain(x, CUT),
        row_label=plain(y, CUT) if y != NONE else "",
    )


def _control(grid: Grid, dim: str) -> str:
    long = dim in grid.dims and grid.dataset.sizes[dim] > 1
    return f"at{grid.dims.index(dim)}" if long else ""
