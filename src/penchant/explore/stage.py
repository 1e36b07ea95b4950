"""Actions other than moving a control: play a sweep, drag a sphere, copy the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penchant.explore.access import readable
from penchant.explore.controls import Number

if TYPE_CHECKING:
    from bokeh.document import Document

HERE = Path(__file__).parent
POWER = "return String(Number(Math.pow(10, tick).toPrecision(3)))"
WORDS = "return words[Math.round(tick)]"
# one step after another: the next is taken when the picture of the last is there
PLAY = """
const next = () => {
  if (!button.active) return
  const value = slider.value + slider.step
  if (value > slider.end + slider.step / 2) button.active = false
  else slider.value = Math.min(value, slider.end)
}
if (cb_obj !== button) setTimeout(next, 60)
else {
  button.label = button.active ? stop : play
  if (button.active && slider.value >= slider.end) slider.value = slider.start
  else next()
}
"""
TURN = """
const {sx, sy} = cb_obj
const degrees = 0.4  // for a pixel
const to = (slider, value) => {
  const steps = Math.round((value - slider.start) / slider.step)
  slider.value = Math.max(slider.start, Math.min(slider.end, slider.start + steps * slider.step))
}
if (cb_obj.event_name === "panstart") plot.grabbed = [sx, sy, across.value, up.value]
else if (plot.grabbed) {
  const [x, y, azimuth, pitch] = plot.grabbed
  to(across, azimuth - degrees * (sx - x))
  to(up, pitch + degrees * (sy - y))
}
"""
COPY = """
const show = (label) => { button.label = label; setTimeout(() => { button.label = first }, 1500) }
const by_hand = () => {  // where a page may not write to the clipboard by itself
  const area = document.createElement("textarea")
  area.value = code.text
  document.body.append(area)
  area.select()
  const done = document.execCommand("copy")
  area.remove()
  show(done ? "Copied" : "Select the code and copy it")
}
if (navigator.clipboard === undefined) by_hand()
else navigator.clipboard.writeText(code.text).then(() => show("Copied"), by_hand)
"""


def formatter(control: Number) -> Any:
    """How a slider writes its value: as a number, a power of ten or a word."""
    from bokeh.models.formatters import CustomJSTickFormatter

    if control.words:
        return CustomJSTickFormatter(code=WORDS, args={"words": list(control.words)})
    return CustomJSTickFormatter(code=POWER) if control.power else "0[.]00"


def play_button(control: Number, slider: Any, drawn: Any) -> Any:
    """A button that moves the slider step by step to its end; `drawn` changes with each picture."""
    from bokeh.models import CustomJS
    from bokeh.models.widgets.buttons import Toggle

    label = f"▶ Play: sweep {control.title}"
    button = Toggle(label=label, name="play", sizing_mode="stretch_width", stylesheets=[readable()])
    words = {"play": label, "stop": "■ Stop"}
    script = CustomJS(code=PLAY, args={"button": button, "slider": slider, **words})
    button.js_on_change("active", script)
    drawn.js_on_change("tags", script)
    return button


def turn_by_dragging(plot: Any, across: Any, up: Any) -> None:
    """Make a drag on the plot move two sliders, which turns the sphere."""
    from bokeh.models import CustomJS

    script = CustomJS(code=TURN, args={"plot": plot, "across": across, "up": up})
    for event in ("panstart", "pan"):
        plot.js_on_event(event, script)


def code_and_button(code: str) -> tuple[Any, Any]:
    """The code of a view as text, and the button that copies it."""
    from bokeh.models import CustomJS
    from bokeh.models.widgets.buttons import Button
    from bokeh.models.widgets.markups import PreText

    first = "Copy as Python"
    text = PreText(text=code, name="python", sizing_mode="stretch_width")
    button = Button(label=first, name="copy_code", stylesheets=[readable()])
    button.js_on_event(
        "button_click", CustomJS(code=COPY, args={"button": button, "code": text, "first": first})
    )
    return text, button


def fill_window(document: Document, plots: list[Any]) -> None:
    """Make the plots follow the size of the window."""
    from bokeh.models import CustomJS

    code = (HERE / "fit.js").read_text(encoding="utf-8")
    document.js_on_event("document_ready", CustomJS(code=code, args={"plots": plots}))
