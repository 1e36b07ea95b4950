"""Figures of Notsawo et al. 2025."""
