"""Figures 1 to 9, and the trajectories that they share."""
