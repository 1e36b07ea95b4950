"""Parametrizations: where training starts and what the parameters compute."""

from tacit.models.diagonal import DiagonalNet
from tacit.models.linearized import Linearized
from tacit.models.model import Model, Separable
from tacit.models.product import ProductNet
from tacit.models.reparametrized import Reparametrized

__all__ = ["DiagonalNet", "Linearized", "Model", "ProductNet", "Reparametrized", "Separable"]
