"""penchant: a laboratory for the implicit bias of gradient descent.

The everyday names are here, all others in the namespaces: penchant.problems, models, methods, stop,
record, regularizers, solvers, measures, forecasts, bounds, lab, plotting. `__init__.pyi` lists the
names with their homes. A name is imported when it is first used, so that a program pays only for
what it needs.
"""

from penchant.namespaces import NAMESPACES as _NAMESPACES
from penchant.namespaces import attach as _attach

__version__ = "0.2.0"
__getattr__, _dir, __all__ = _attach(__name__, *_NAMESPACES)


def __dir__() -> list[str]:
    return [*_dir(), "__version__"]
