"""Functions of the user that are called during the run, after a look or to end the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penchant.door import Invalid, door_as
from penchant.watch.backends.backend import WHO


class Hooks:
    """`on_look` gets the watch after every look, `stop_when` says whether the training should stop.

    The second is asked at looks and glances. Once it has said so, `stopped` stays true.
    """

    @door_as(WHO)
    def __init__(
        self, on_look: Callable[[Any], Any] | None, stop_when: Callable[[Any], Any] | None
    ):
        for name, hook in (("on_look", on_look), ("stop_when", stop_when)):
            if not (hook is None or callable(hook)):
                raise Invalid(f"{name} must be a function of the watch, got {type(hook).__name__}")
        self.on_look, self.stop_when = on_look, stop_when
        self.stopped = False

    def call(self, watch: Any, look: bool, kept: Callable[[str], Any]) -> None:
        """Call the functions after a glance or a look; each has its own guard `kept`."""
        if self.stop_when is not None and not self.stopped:
            with kept("stop_when"):
                self.stopped = bool(self.stop_when(watch))
        if self.on_look is not None and look:
            with kept("on_look"):
                self.on_look(watch)
