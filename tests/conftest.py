"""What the whole suite shares: fewer collections of garbage."""

import gc
import os

# two workers share two cores: threads that spin for each other's work cost more than they give
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_finish():
    """What is imported by now and every traced program stay: collections, a twentieth of the
    suite's time, mostly find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
