"""Exact flows: integrators of gradient flow, each in variables that float64 can hold."""
