"""The address of a view and its values; nothing in it is trusted, since anyone can write one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from penchant.arguments import one_of
from penchant.door import Invalid, door_as, speaking_as
from penchant.explore.controls import WHO, Control, cut
from penchant.explore.picture import Picture

LONGEST = 1000  # bytes of a query string
Values = Mapping[str, float | str]


@dataclass(frozen=True, eq=False)
class View:
    """One page: its words, its controls, and the function from their values to a picture.

    `python` writes the code that computes what the values show; `sweep` names the slider that the
    play button moves; the picture is drawn again every `refresh` seconds, if that is not 0.
    """

    name: str
    title: str
    words: str
    controls: tuple[Control, ...]
    picture: Callable[[Values], Picture]
    python: Callable[[Values], str] = lambda values: ""
    sweep: str = ""
    refresh: float = 0.0

    @property
    def start(self) -> dict[str, float | str]:
        return {control.name: control.start for control in self.controls}


@dataclass(frozen=True)
class State:
    """A view and a value for each of its controls."""

    view: str
    values: Values


@door_as(WHO)
def read_state(query: str, views: Mapping[str, View]) -> State:
    """The state that a query string describes; anything else raises a ValueError.

    A control that is left out has its default value.
    """
    if len(query) > LONGEST:
        raise Invalid(f"the address is too long ({len(query)} > {LONGEST} characters)")
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            strict_parsing=bool(query),
            max_num_fields=40,
            errors="strict",
        )
    except ValueError:
        raise Invalid("the address must have the form ?name=value&name=value") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise Invalid("the address gives the same name twice; keep one")
    name = given.pop("view", next(iter(views)))
    view = views[one_of("view", cut(name), views)]
    controls = {control.name: control for control in view.controls}
    for key in given:
        with speaking_as(f"{WHO} {view.name}"):
            one_of("name in the address", cut(key), controls)
    return State(view.name, view.start | {k: controls[k].read(text) for k, text in given.items()})


def write_state(state: State, views: Mapping[str, View]) -> str:
    """The query string of a state, which `read_state` reads back."""
    controls = {control.name: control for control in views[state.view].controls}
    pairs = [(name, controls[name].write(value)) for name, value in state.values.items()]
    return urlencode([("view", state.view), *pairs])
