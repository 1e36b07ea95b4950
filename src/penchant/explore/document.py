"""A view as a bokeh document: controls beside panels, redrawn when a control moves."""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penchant.explore.access import name_parts, readable
from penchant.explore.cells import DrawnCells
from penchant.explore.controls import Control, Number, Upload
from penchant.explore.drawing import Drawn
from penchant.explore.page import template, variables
from penchant.explore.picture import Picture
from penchant.explore.stage import (
    code_and_button,
    fill_window,
    formatter,
    play_button,
    turn_by_dragging,
)
from penchant.explore.state import State, View, write_state
from penchant.explore.tables import keep
from penchant.records import NumericalError

if TYPE_CHECKING:
    from bokeh.document import Document

LOG = logging.getLogger(__name__)
PAUSE = 8  # milliseconds to wait for further moves of a slider, so that only the last is drawn
TYPE: Any = {"font-size": "15px", "font-family": "inherit"}
LOAD = "location.search = '?' + cb_obj.tags[0]"
ADDRESS = "history.replaceState(null, '', '?' + cb_obj.tags[0])"


class Live:
    """One visitor's page."""

    def __init__(self, document: Document, state: State, views: Mapping[str, View]):
        self.document, self.views, self.view = document, views, views[state.view]
        self.values = dict(state.values)
        self.waiting = False
        first, failure = self._first()
        self.panels = [
            Drawn(panel) if panel.cells is None else DrawnCells(panel, self.choose)
            for panel in first.panels
        ]
        self.sentence = _sentence(failure or first.sentence, self.address)
        self.widgets = {control.name: self._widget(control) for control in self.view.controls}
        self.code, self.copy = code_and_button(self.view.python(self.values))
        if failure:
            self._clear()
        self._fill(first)
        if self.view.refresh:
            document.add_periodic_callback(self.redraw, round(1000 * self.view.refresh))

    @property
    def address(self) -> str:
        return write_state(State(self.view.name, self.values), self.views)

    def _first(self) -> tuple[Picture, str]:
        """The picture of the state, or the default picture and why the state has none."""
        try:
            return self.view.picture(self.values), ""
        except (ValueError, NumericalError) as reason:
            return self.view.picture(self.view.start), str(reason)

    def _widget(self, control: Control) -> Any:
        from bokeh.models.widgets.inputs import Select
        from bokeh.models.widgets.sliders import Slider

        if isinstance(control, Upload):
            return self._upload(control)
        value: Any = self.values[control.name]
        if isinstance(control, Number):
            widget: Any = Slider(
                start=control.low,
                end=control.high,
                step=control.step,
                value=value,
                title=control.title,
                format=formatter(control),
            )
        else:
            options: Any = list(control.options.items())
            widget = Select(options=options, value=value, title=control.title)
        widget.update(
            name=control.name, styles=TYPE, stylesheets=[readable()], sizing_mode="stretch_width"
        )
        widget.on_change("value", lambda _, __, new: self.move(control, new))
        return widget

    def _upload(self, control: Upload) -> Any:
        """A field for a file. Its picture has other curves, so that the page is loaded again."""
        from bokeh.models import CustomJS
        from bokeh.models.widgets.inputs import FileInput

        field = FileInput(accept=".csv,.txt", title=control.title, name=control.name)
        field.update(styles=TYPE, stylesheets=[readable()], sizing_mode="stretch_width")

        def take() -> None:
            try:
                self.values[control.name] = keep(b64decode(str(field.value)), str(field.filename))
                self.view.picture(self.values)
            except (ValueError, NumericalError) as reason:
                self.sentence.update(text=str(reason))
            else:
                field.tags = [self.address]

        def soon(_: str, __: Any, ___: Any) -> None:  # the name of the file comes after its content
            self.document.add_next_tick_callback(take)

        field.on_change("value", soon)
        field.js_on_change("tags", CustomJS(code=LOAD))
        return field

    def move(self, control: Control, value: Any) -> None:
        """Store a new value and draw soon, together with any further changes until then."""
        try:
            self.values[control.name] = control.read(str(value))
        except ValueError as reason:  # a browser whose page was altered; ours sends no such value
            LOG.warning("%s", reason)
            self.sentence.update(text=str(reason))
            return
        if not self.waiting:
            self.waiting = True
            self.document.add_timeout_callback(self.redraw, PAUSE)

    def choose(self, values: Mapping[str, float | str]) -> None:
        """Set the controls that a click changes; each of them then calls `move`."""
        for name, value in values.items():
            self.widgets[name].value = value

    def redraw(self) -> None:
        """Show the picture of the present values, or the reason why there is none."""
        self.waiting = False
        self.code.text = self.view.python(self.values)
        try:
            picture = self.view.picture(self.values)
        except (ValueError, NumericalError) as reason:
            self._clear()
            self.sentence.update(text=str(reason), tags=[self.address])
        else:
            for drawn, panel in zip(self.panels, picture.panels, strict=True):
                drawn.show(panel)
            self.sentence.update(text=picture.sentence, tags=[self.address])

    def _clear(self) -> None:
        for drawn in self.panels:
            drawn.clear()

    def _fill(self, picture: Picture) -> None:
        from bokeh.layouts import column

        figures = [drawn.figure for drawn in self.panels]
        for figure, panel in zip(figures, picture.panels, strict=True):
            if panel.dragged:
                turn_by_dragging(figure, *(self.widgets[name] for name in panel.dragged))
        every = [*self._play(), *self.widgets.values()]
        controls = column(*every, name="controls", sizing_mode="stretch_width")
        coded = [self.code, self.copy] if self.code.text else []
        for root in (controls, self.sentence, *coded, *figures):
            self.document.add_root(root)
        name_parts(self.document)
        fill_window(self.document, figures)
        self.document.title = self.view.title
        self.document.template = template()
        self.document.template_variables.update(
            variables(self.view.title, self.view.words, self.views, self.view.name),
            panels=picture.panels,
            coded=bool(coded),
        )

    def _play(self) -> list[Any]:
        """The button that sweeps a slider, if the view has one to sweep."""
        controls = {control.name: control for control in self.view.controls}
        swept = controls.get(self.view.sweep)
        if not isinstance(swept, Number):
            return []
        return [play_button(swept, self.widgets[swept.name], self.sentence)]


def _sentence(text: str, address: str) -> Any:
    """The line above the panels; it also writes the state into the address."""
    from bokeh.models import CustomJS
    from bokeh.models.widgets.markups import Div

    line = Div(
        text=text,
        name="sentence",
        render_as_text=True,
        disable_math=True,
        tags=[address],
        sizing_mode="stretch_width",
        styles=TYPE,
    )
    line.js_on_change("tags", CustomJS(code=ADDRESS))
    return line
