"""Exact flows: integrators of gradient flow, each with the variables that its numbers need."""
