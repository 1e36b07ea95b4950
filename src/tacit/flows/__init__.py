"""How training moves: exact dual flow, flow in the parameters, and descent."""

from tacit.flows.descent import GradientDescent
from tacit.flows.dual import DualFlow
from tacit.flows.flow import Flow
from tacit.flows.parameter import ParameterFlow
from tacit.flows.path import Path

__all__ = ["DualFlow", "Flow", "GradientDescent", "ParameterFlow", "Path"]
