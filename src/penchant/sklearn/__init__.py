"""Estimators of scikit-learn that are diagonal nets trained by gradient flow, solved exactly.

They need scikit-learn: `pip install 'penchant[sklearn]'`.
"""

from __future__ import annotations

from penchant.door import NotInstalled

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError:
    raise NotInstalled(
        "penchant.sklearn needs scikit-learn; pip install 'penchant[sklearn]'"
    ).named("import") from None

from penchant.sklearn.classifier import DiagonalNetClassifier
from penchant.sklearn.cross_validation import DiagonalNetRegressorCV
from penchant.sklearn.regressor import DiagonalNetRegressor

__all__ = ["DiagonalNetClassifier", "DiagonalNetRegressor", "DiagonalNetRegressorCV"]
