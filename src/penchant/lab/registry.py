"""Experiments by id, in the order of their papers."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Mapping

from penchant.arguments import one_of
from penchant.door import Invalid, door_as
from penchant.lab.experiment import Experiment
from penchant.lab.paper import papers
from penchant.lab.studies.sizes import Sizes

LISTED = "`penchant list` shows all ids, `penchant list M 'figure 3'` those of a place"


class Registry:
    """Experiments by id; those that `listed` places in a module are imported when first used."""

    def __init__(
        self, listed: Mapping[str, str] | None = None, experiments: Iterable[Experiment] = ()
    ):
        self._listed = dict(listed or {})
        self._found: dict[str, Experiment] = {}
        for experiment in experiments:
            if experiment.id in self._found:
                raise ValueError(f"Registry: {experiment.id!r} is given twice; choose another id")
            self._found[experiment.id] = experiment

    def __repr__(self) -> str:
        return f"<Registry of {len(self.ids)} experiments>"

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, in the order of the papers."""
        return tuple(dict.fromkeys((*self._listed, *self._found)))

    @door_as("penchant")
    def __getitem__(self, id: str) -> Experiment:
        """The experiment with this id, in capitals or not."""
        return self.find(id)

    def find(self, id: str) -> Experiment:
        """The same, for a caller that has a door of its own."""
        spelled = {known.upper(): known for known in self.ids}
        name = spelled.get(id.strip().upper()) or one_of("id", id, self.ids, LISTED)
        if name not in self._found:
            module = importlib.import_module(self._listed[name])
            experiments = [
                v for v in vars(module).values() if isinstance(v, Experiment) and v.id == name
            ]
            self._found[name] = experiments[0]
        return self._found[name]

    def experiments(self) -> tuple[Experiment, ...]:
        """Every experiment, in the order of the papers."""
        return tuple(self[id] for id in self.ids)

    def select(self, names: str | Iterable[str] | None = None) -> tuple[Experiment, ...]:
        """The experiments named by ids or letters of papers, any case; None means all."""
        if names is None:
            return self.experiments()
        wanted: set[str] = set()
        for name in [names] if isinstance(names, str) else names:
            wanted |= set(self._named(name))
        if not wanted:
            raise ValueError("verify: no claim id given; name one, or pass None for all of them")
        return tuple(self[id] for id in self.ids if id in wanted)

    @door_as("verify")
    def _named(self, name: str) -> list[str]:
        if not isinstance(name, str):
            raise Invalid(f"a claim id must be a string, got {name!r}")
        key = name.strip().upper()
        ids = [id for id in self.ids if key in (id.upper(), id.split("-")[0].upper())]
        if not ids:
            letters = (id.split("-")[0] for id in self.ids)
            one_of("claim id", name, dict.fromkeys([*self.ids, *letters]), LISTED)
        return ids

    def is_one(self, name: object) -> bool:
        """True if `name` is the id of a single experiment rather than a letter or a list."""
        return isinstance(name, str) and name.strip().upper() in {id.upper() for id in self.ids}

    def studies(self) -> dict[str, Sizes]:
        """Every study of the experiments, by its name."""
        every = self.experiments()
        return {sizes.name: sizes for experiment in every for sizes in experiment.studies}


@functools.cache
def all_claims() -> Registry:
    """The experiments of all installed papers, in the order of their lists."""
    listed: dict[str, str] = {}
    for paper in papers():
        listed |= {id: f"{paper.package}.{file}" for id, file in paper.statements.items()}
    return Registry(listed)
