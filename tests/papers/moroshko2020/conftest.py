"""Verdicts of this paper's experiments with one argument of a cell changed."""

import dataclasses

import pytest

from penchant.lab import Setting, Sizes, all_claims


@pytest.fixture(scope="session")
def verdict_with(cells):
    """verdict_with(id, size, which, **arguments): the verdict if one study has other arguments."""

    def found(id, size="tiny", which=0, **arguments):
        experiment = all_claims()[id]
        studies = list(experiment.studies)
        old = studies[which]
        words = {**old.quick, "arguments": {**old.quick["arguments"], **arguments}}
        studies[which] = Sizes(f"{old.name}-changed", words, old.others)
        changed = dataclasses.replace(experiment, study=tuple(studies))
        return changed.run(Setting(size, cells))

    return found
