"""What the whole suite shares: fewer collections of garbage, programs compiled once."""

import dataclasses
import gc
import os

import pytest

# two workers share two cores: threads that spin for each other's work cost more than they give
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_finish():
    """What is imported by now and every traced program stay: collections, a twentieth of the
    suite's time, mostly find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="module")
def kept_programs():
    """Runs of TokenAdam that differ only in their length and records share a compiled program."""
    from tacit.flows.token_adam import TokenAdam

    made, compile_anew = {}, TokenAdam.compiled

    def compiled(self, net, problem):
        same = dataclasses.replace(self, steps=1, record=None, until=None, points_per_decade=1)
        key = str(dataclasses.asdict(same)), net, id(problem)
        if key not in made:
            made[key] = compile_anew(self, net, problem), problem  # so that its id stays its own
        return made[key][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenAdam, "compiled", compiled)
        yield
