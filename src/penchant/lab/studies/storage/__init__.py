"""Cells and results on disk: written whole or not at all, checked when they are read."""
