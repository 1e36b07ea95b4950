"""Measurements: pure functions of arrays that do no training."""
