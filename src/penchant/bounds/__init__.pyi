"""Bounds that theorems state: radii, rates and steps as numbers."""

from penchant.bounds.penalized_descent import (
    ball_radius,
    contraction,
    dominated_steps,
    largest_step,
)

__all__ = [
    "ball_radius",
    "contraction",
    "dominated_steps",
    "largest_step",
]
