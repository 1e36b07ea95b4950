"""How training moves: exact dual flow, flow in the parameters, and descent."""

from tacit.flows.descent import GradientDescent
from tacit.flows.dual import DualFlow
from tacit.flows.flow import Flow
from tacit.flows.normalized import NormalizedDescent
from tacit.flows.parameter import ParameterFlow
from tacit.flows.path import Path
from tacit.flows.stopping import LogLoss, Near, Scale

__all__ = [
    "DualFlow",
    "Flow",
    "GradientDescent",
    "LogLoss",
    "Near",
    "NormalizedDescent",
    "ParameterFlow",
    "Path",
    "Scale",
]
