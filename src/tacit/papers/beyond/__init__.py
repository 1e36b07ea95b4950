"""Ours: phase diagrams that no paper has, as studies for `tacit run`."""
